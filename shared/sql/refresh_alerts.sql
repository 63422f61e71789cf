-- Writes what is known now of open alerts that are about to be told again. $1 ids, $2 told, $3 details.
update matins.alert a
   set told = given.told, detail = given.detail
  from unnest($1::bigint[], $2::text[], $3::jsonb[]) as given (id, told, detail)
 where a.id = given.id and a.closed_at is null;
