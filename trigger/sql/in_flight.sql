-- Counts a job's accounts that are published, not done and not delayed, up to a bound and one more. Rows behind the
-- watermark are the first publish's alone, so that a long fan-out's backlog is not read. $1 job, $2 bound, $3 now.
select count(*)
  from (select 1
          from matins.occurrence o
          join lateral (
               select coalesce(max(p.through_position), 0) as through
                 from matins.publication p where p.occurrence_id = o.id) published on true
          join matins.ledger l
            on l.occurrence_id = o.id and l.scheduled_at = o.scheduled_at and l.position <= published.through
           and l.finished_at is null
         where o.job = $1 and o.state in ('claimed', 'running')
           and (l.state = 'running'
                or ((l.epoch = 0 or l.published_at is not null)
                    and (l.not_before is null or l.not_before <= coalesce($3::timestamptz, clock_timestamp()))))
         limit $2::bigint + 1) counted;
