-- Reads everything about one occurrence. $1 job, $2 scheduled_at, $3 variant.
select o.*, clock_timestamp() as now, i.version as claimed_version,
       coalesce(i.host, (select a.host from matins.attempt a
                          where a.job = o.job and a.scheduled_at = o.scheduled_at and a.variant = o.variant
                            and a.instance = o.claimed_by)) as claimed_on,
       (select e.retained_from from matins.environment e where o.scheduled_at < e.retained_from) as pruned_before,
       into_one.scheduled_at as coalesced_at, into_one.variant as coalesced_variant,
       in_the_way.scheduled_at as waits_for_at, in_the_way.variant as waits_for_variant
  from matins.occurrence o
  left join matins.instance i on i.id = o.claimed_by
  left join matins.occurrence into_one on into_one.id = o.coalesced_into
  left join matins.occurrence in_the_way
    on in_the_way.id = o.waits_for and o.state = 'expected' and in_the_way.closed_at is null
 where o.job = $1 and o.scheduled_at = $2 and o.variant = $3;
