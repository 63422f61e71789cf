-- Gives back the lead of jobs, at the beginning of a drain or when another definition of them is current: the next trigger
-- that asks has it. The epochs stay. $1 jobs, $2 holder, $3 now.
update matins.lease
   set until = coalesce($3::timestamptz, clock_timestamp()) - interval '1 microsecond'
 where holder = $2 and name like 'leader:%' and until >= coalesce($3::timestamptz, clock_timestamp())
   and substr(name, 8) = any ($1::text[])
returning substr(name, 8) as job;
