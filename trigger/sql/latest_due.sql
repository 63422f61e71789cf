-- Finds the latest instant of a job that is due, whatever became of it: at-least-once calls then claim it once.
-- $1 job, $2 now.
select scheduled_at
  from matins.occurrence
 where job = $1 and variant = '' and origin = 'schedule' and reason is distinct from 'superseded'
   and scheduled_at <= coalesce($2::timestamptz, clock_timestamp())
 order by scheduled_at desc
 limit 1;
