-- Lists what live processes hold of each job of which they hold more than one definition: a row for each, with its latest
-- revision, null if it never was current. Processes of a release that doesn't tell what they hold are left out. $1 now.
with held as (
    select said.job, said.fingerprint, i.id, i.kind, i.started_at
      from matins.instance i
     cross join lateral jsonb_each_text(i.definitions) as said (job, fingerprint)
     where i.stopped_at is null and i.seen_at > coalesce($1::timestamptz, clock_timestamp()) - interval '1 minute')
, differing as (
    select job from held group by job having count(distinct fingerprint) > 1)
select held.job, held.fingerprint, min(held.started_at) as since,
       array_agg(held.kind || ' ' || left(held.id, 8) order by held.kind, held.id) as instances,
       (select max(r.revision) from matins.job_revision r
         where r.job = held.job and r.fingerprint = held.fingerprint) as revision,
       exists (select from matins.job j where j.name = held.job and j.fingerprint = held.fingerprint) as current
  from held
  join differing on differing.job = held.job
 group by held.job, held.fingerprint
 order by held.job, since, held.fingerprint;
