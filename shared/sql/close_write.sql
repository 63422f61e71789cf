-- Closes an occurrence once: of all who try, one finds this generation still open; and no row may have come open again.
-- A cancel or a deadline that came behind the candidate's read is not overlooked: the next try closes as it says.
-- $1 id, $2 generation, $3 state, $4 reason, $5 to $8 succeeded, failed, dead, cancelled, $9 report, $10 now, $11 instance,
-- $12 ending as the candidate's read had it.
with closed as (
    update matins.occurrence o
       set state = $3, reason = $4, total = $5::bigint + $6::bigint + $7::bigint + $8::bigint,
           succeeded = $5, failed = $6, dead = $7, cancelled = $8,
           report = $9, closed_at = coalesce($10::timestamptz, clock_timestamp()), lease_until = null
     where o.id = $1 and o.generation = $2 and o.state in ('claimed', 'running')
       and o.ending is not distinct from $12
       and (o.sealed_at is not null or o.ending is not null)
       and (select l.position from matins.ledger l
             where l.occurrence_id = o.id and l.scheduled_at = o.scheduled_at and l.finished_at is null
             order by l.position desc limit 1) is null
    returning o.id, o.job, o.state, o.total, o.closed_at, o.claimed_at)
, audited as (
    insert into matins.audit (kind, job, occurrence_id, instance, reason, detail)
    select 'closed', job, id, $11, $4, jsonb_build_object('state', state, 'generation', $2::integer, 'total', total)
      from closed)
select state, total, closed_at, claimed_at from closed;
