-- Says who holds an occurrence: a process of the fleet, or the operator who fired it. $1 job, $2 scheduled_at, $3 variant.
select o.claimed_by, o.claimed_at, o.fired_by, o.fire_reason, i.host, i.version
  from matins.occurrence o
  left join matins.instance i on i.id = o.claimed_by
 where o.job = $1 and o.scheduled_at = $2 and o.variant = $3;
