-- Says how far a queue has been worked off; of several who say it, the furthest counts, but never the future.
-- $1 names, $2 started through.
insert into matins.work_queue as known (name, started_through)
select said.name, least(said.started_through, clock_timestamp())
  from unnest($1::text[], $2::timestamptz[]) as said (name, started_through)
 order by said.name
on conflict (name) do update set started_through = greatest(known.started_through, excluded.started_through);
