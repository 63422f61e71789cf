-- Puts the pseudonym into reports and reasons of the occurrences of a range of ids. The cursor of a fan-out that stands at the
-- account is taken away; one that is still to go on at it keeps it, and is told of.
-- $1 account, $2 pseudonym, $3 above this id, $4 up to this id.
with named as (
    select o.id, o.state = 'claimed' as goes_on,
           o.cursor is distinct from matins.redact(o.cursor, $1, $2) as stands_at
      from matins.occurrence o
     where o.id > $3 and o.id <= $4
       and strpos(concat_ws(' ', o.report::text, o.cursor, o.reason, o.ending_reason, o.fan_out_error, o.fire_reason),
                  btrim(to_json($1::text)::text, '"')) > 0
       for update)
, forgotten as (
    update matins.occurrence o
       set report = matins.redact_document(o.report, $1, $2), reason = matins.redact(o.reason, $1, $2),
           ending_reason = matins.redact(o.ending_reason, $1, $2),
           fan_out_error = matins.redact(o.fan_out_error, $1, $2), fire_reason = matins.redact(o.fire_reason, $1, $2),
           cursor = case when named.stands_at and not named.goes_on then null else o.cursor end
      from named
     where o.id = named.id
    returning o.id)
select count(*) as changed, count(*) filter (where named.stands_at and named.goes_on) as goes_on
  from named
  join forgotten on forgotten.id = named.id;
