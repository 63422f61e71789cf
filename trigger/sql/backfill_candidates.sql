-- Reads what became of the scheduled instants of a range, the earliest first. Under the job row's lock.
-- $1 job, $2 from, $3 until, both included, $4 at most.
select o.id, o.scheduled_at, o.state, o.generation,
       case when o.state = 'coalesced' then 'into ' || to_char(target.scheduled_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI"Z"')
            else o.reason end as reason
  from matins.occurrence o
  left join matins.occurrence target on target.id = o.coalesced_into
 where o.job = $1 and o.variant = '' and o.scheduled_at between $2 and $3
 order by o.scheduled_at
 limit $4;
