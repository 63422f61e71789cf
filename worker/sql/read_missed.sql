-- Why a start got no row: settled, of another generation, busy, too early, of an occurrence whose dispatch is over, or
-- because everything is held.
-- $1 occurrence id, $2 its scheduled_at, $3 accounts, $4 now.
select l.account, l.state, l.generation, o.ending is not null as ended,
       greatest(extract(epoch from l.not_before - coalesce($4::timestamptz, clock_timestamp())), 0)::double precision as early,
       exists (select 1 from matins.environment e where e.held_since is not null) as held
  from matins.ledger l
  join matins.occurrence o on o.id = l.occurrence_id
 where l.occurrence_id = $1 and l.scheduled_at = $2 and l.account = any($3::text[])
 order by l.account;
