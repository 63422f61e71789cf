-- Reads what an ad-hoc occurrence is named by and covers, unless told otherwise: this second, and the time since the last
-- scheduled instant that was claimed. Under the job row's lock. $1 job, $2 now.
select date_trunc('second', clock.now) as instant,
       coalesce((select max(o.scheduled_at) from matins.occurrence o
                  where o.job = j.name and o.variant = '' and o.origin = 'schedule' and o.claimed_at is not null),
                date_trunc('second', j.known_since)) as since
  from (select coalesce($2::timestamptz, clock_timestamp()) as now) clock, matins.job j
 where j.name = $1;
