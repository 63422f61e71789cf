-- Says how far a queue has been worked off; of several who say it, the furthest counts. $1 names, $2 started through.
insert into matins.work_queue as known (name, started_through)
select * from unnest($1::text[], $2::timestamptz[])
on conflict (name) do update set started_through = greatest(known.started_through, excluded.started_through);
