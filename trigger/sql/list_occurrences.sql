-- Lists occurrences, the latest first; waiting ones only when they are asked for by state. Of each job its own latest are
-- taken by an index, so that a long past of all of them is not read through.
-- $1 job (null: all), $2 states (null: all but expected), $3 since (null: any), $4 at most.
select latest.*
  from matins.job j
  cross join lateral (
       select o.job, o.scheduled_at, o.variant, o.origin, o.state, o.reason, o.ending, o.generation, o.claimed_at,
              o.opened_at, o.closed_at, o.accounts_read, o.total, o.succeeded, o.failed, o.dead, o.cancelled, o.fired_by
         from matins.occurrence o
        where o.job = j.name
          and (case when $2::text[] is null then o.state <> 'expected' else o.state = any ($2::text[]) end)
          and ($3::timestamptz is null or o.scheduled_at >= $3)
        order by o.scheduled_at desc, o.variant
        limit $4) latest
 where $1::text is null or j.name = $1
 order by latest.scheduled_at desc, latest.job, latest.variant
 limit $4;
