-- Lists backfills with their progress, the latest first. $1 job (null: all), $2 at most.
select b.id, b.job, b.since, b.until, b.mode, b.reverse, b.max_active, b.state, b.actor, b.reason, b.created_at, b.ended_at,
       b.ended_by, b.end_reason, counted.*
  from matins.backfill b
  cross join lateral (
       select count(*) as total,
              count(*) filter (where b.state = 'active' and i.left_out is null
                                 and (o.state = 'expected' or o.generation < i.generation)) as waiting,
              count(*) filter (where o.state in ('claimed', 'running')) as running,
              count(*) filter (where o.state = 'succeeded') as succeeded,
              count(*) filter (where o.generation >= i.generation and o.state = 'partial') as partial,
              count(*) filter (where o.generation >= i.generation and o.state = 'failed') as failed,
              count(*) filter (where o.generation >= i.generation and o.state = 'cancelled') as cancelled,
              count(*) filter (where i.left_out is not null or o.state = 'skipped'
                                  or (b.state <> 'active' and o.generation < i.generation)) as left_out
         from matins.backfill_occurrence i
         join matins.occurrence o on o.id = i.occurrence_id
        where i.backfill_id = b.id) counted
 where $1::text is null or b.job = $1
 order by b.id desc
 limit $2;
