-- Names the occurrences that were due before an instant and are not over, or still have an open account. Behind the locks of
-- all jobs nothing can be added to them. $1 before, $2 at most.
with unfinished as (
    select o.job, o.scheduled_at, o.variant, o.state
      from matins.occurrence o
     where o.scheduled_at < $1
       and (o.state in ('claimed', 'running')
            or o.id in (select l.occurrence_id from matins.ledger l
                         where l.scheduled_at < $1 and l.finished_at is null)))
select job, scheduled_at, variant, state, count(*) over () as found
  from unfinished
 order by scheduled_at, job, variant
 limit $2;
