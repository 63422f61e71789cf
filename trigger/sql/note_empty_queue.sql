-- Says that a queue held nothing after a moment; of several who say it, the latest counts. $1 queue, $2 moment.
insert into matins.work_queue as known (name, empty_at)
values ($1, $2)
on conflict (name) do update set empty_at = greatest(known.empty_at, excluded.empty_at);
