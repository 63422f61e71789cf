-- Lists occurrences, the latest first; waiting ones only when they are asked for by state.
-- $1 job (null: all), $2 states (null: all but expected), $3 since (null: any), $4 at most.
select o.job, o.scheduled_at, o.variant, o.origin, o.state, o.reason, o.ending, o.generation, o.claimed_at, o.opened_at,
       o.closed_at, o.accounts_read, o.total, o.succeeded, o.failed, o.dead, o.cancelled, o.fired_by
  from matins.occurrence o
 where ($1::text is null or o.job = $1)
   and (case when $2::text[] is null then o.state <> 'expected' else o.state = any ($2::text[]) end)
   and ($3::timestamptz is null or o.scheduled_at >= $3)
 order by o.scheduled_at desc, o.job, o.variant
 limit $4;
