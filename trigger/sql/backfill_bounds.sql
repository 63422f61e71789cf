-- Reads between which instants a job's rows are complete, from when on ledgers are retained, and the present. Under the
-- job row's lock. $1 job, $2 now.
select date_trunc('second', j.known_since) as known_since, j.planned_through, coalesce($2::timestamptz, clock_timestamp()) as now,
       (select e.retained_from from matins.environment e) as retained_from,
       (select b.id from matins.backfill b where b.job = j.name and b.state = 'active') as active
  from matins.job j
 where j.name = $1;
