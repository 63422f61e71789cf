-- Lists planned maintenance: what is in force, then what is to come, and with $1 what is over, the latest first.
-- $1 also what is over, $2 job, with what is of all jobs (null: of any), $3 at most.
select m.id, m.job, m.since, m.until, m.actor, m.reason, m.created_at,
       case when m.until <= present.at then 'over' when m.since <= present.at then 'in force' else 'to come' end as state
  from matins.maintenance m
  cross join (select clock_timestamp() as at) present
 where ($1::boolean or m.until > present.at) and ($2::text is null or m.job is null or m.job = $2)
 order by m.until <= present.at, case when m.until > present.at then m.since end, m.until desc, m.id
 limit $3;
