-- Reads the occurrences of a job that are not over, and how far each must be looked through: what was never published
-- can't run or be lost, so the backlog of a long fan-out is not read; where dispatch has ended, publishing has too, and
-- every row counts. $1 job.
select o.id, o.scheduled_at, o.ending,
       case when o.ending is null
            then coalesce((select max(p.through_position) from matins.publication p where p.occurrence_id = o.id), 0)
            else 9223372036854775807 end as through
  from matins.occurrence o
 where o.job = $1 and o.state in ('claimed', 'running')
 order by o.id;
