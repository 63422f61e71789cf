-- Notes of each active occurrence whether it has got on since the last look, and forgets those that are over: how far its
-- accounts were read and published, and between which places of the fan-out its open ones lie; each is one seek in an index,
-- whatever the number of accounts. What workers settle between these places, they say themselves. $1 now.
with clock as (select coalesce($1::timestamptz, clock_timestamp()) as now)
, forgotten as (
    delete from matins.progress p
     where not exists (
        select from matins.occurrence o where o.id = p.occurrence_id and o.state in ('claimed', 'running')))
insert into matins.progress as known (occurrence_id, seen, moved_at)
select o.id,
       concat_ws('/', o.generation, o.accounts_read, o.sealed_at is not null, coalesce(published.through, 0),
                 coalesce(first.position, 0), coalesce(last.position, 0)),
       clock.now
  from clock
  join matins.occurrence o on o.state in ('claimed', 'running')
  left join lateral (
       select max(p.through_position) as through from matins.publication p where p.occurrence_id = o.id) published on true
  left join lateral (
       select l.position from matins.ledger l
        where l.occurrence_id = o.id and l.scheduled_at = o.scheduled_at and l.finished_at is null
        order by l.position limit 1) first on true
  left join lateral (
       select l.position from matins.ledger l
        where l.occurrence_id = o.id and l.scheduled_at = o.scheduled_at and l.finished_at is null
        order by l.position desc limit 1) last on true
 order by o.id
on conflict (occurrence_id) do update
   set seen = excluded.seen, moved_at = greatest(known.moved_at, excluded.moved_at)
 where known.seen <> excluded.seen;
