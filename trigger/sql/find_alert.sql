-- Finds the alert of a number; or of a kind and a subject the open one, and without one the last that there was.
-- $1 number (null: by the others), $2 kind, $3 subject.
select a.*, clock_timestamp() as now, planned.until as maintained_until
  from matins.alert a
  left join lateral (
       select max(m.until) as until from matins.maintenance m
        where (m.job is null or m.job = a.job) and m.since <= clock_timestamp() and m.until > clock_timestamp()) planned on true
 where a.id = $1::bigint or ($1::bigint is null and a.kind = $2 and a.subject = $3)
 order by a.closed_at is not null, a.id desc
 limit 1;
