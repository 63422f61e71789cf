-- Reads everything about one occurrence. $1 job, $2 scheduled_at, $3 variant.
select o.*, clock_timestamp() as now, i.host as claimed_on, i.version as claimed_version,
       into_one.scheduled_at as coalesced_at, into_one.variant as coalesced_variant
  from matins.occurrence o
  left join matins.instance i on i.id = o.claimed_by
  left join matins.occurrence into_one on into_one.id = o.coalesced_into
 where o.job = $1 and o.scheduled_at = $2 and o.variant = $3;
