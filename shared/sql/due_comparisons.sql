-- Reads the jobs whose schedule is to be compared with their rows: those of which an instant should have been claimed by now,
-- and those that are new or have a new definition. What every worker runs for itself has no rows ahead. $1 at most, $2 now.
with clock as (select coalesce($2::timestamptz, clock_timestamp()) as now)
select j.name, j.revision, j.definition, j.planned_through, j.paused_at is not null as paused,
       j.retired_at is not null as retired, r.effective_from, clock.now,
       case when c.revision = j.revision then c.compared_through end as compared_through,
       greatest(j.resumed_at, (select w.held_at from matins.watch w)) as counts_from
  from clock
  join matins.job j on j.definition ->> 'coordination' is distinct from 'every'
  join matins.job_revision r on r.job = j.name and r.revision = j.revision
  left join matins.comparison c on c.job = j.name
 where c.job is null or c.revision <> j.revision or c.next_at <= clock.now
 order by c.next_at nulls first, j.name
 limit $1;
