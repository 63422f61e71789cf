-- Counts a job's accounts that are published, not done and not delayed, up to a bound and one more. Rows behind the
-- watermark are the first publish's alone, so that a long fan-out's backlog is not read. The limit inside keeps the
-- order: first the watermarks, then the open rows below each. $1 job, $2 bound, $3 now.
with published as materialized (
    select o.id, o.scheduled_at,
           coalesce((select max(p.through_position) from matins.publication p where p.occurrence_id = o.id), 0) as through
      from matins.occurrence o
     where o.job = $1 and o.state in ('claimed', 'running'))
select count(*)
  from (select 1
          from published
         cross join lateral (
               select 1
                 from matins.ledger l
                where l.occurrence_id = published.id and l.scheduled_at = published.scheduled_at
                  and l.position <= published.through and l.finished_at is null
                  and (l.state = 'running'
                       or ((l.epoch = 0 or l.published_at is not null)
                           and (l.not_before is null or l.not_before <= coalesce($3::timestamptz, clock_timestamp()))))
                limit $2::bigint + 1) open
         limit $2::bigint + 1) counted;
