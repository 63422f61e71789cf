-- Reads how many signs of life of a process the database remembers, and the last of them. $1 id.
select beats, seen_at as seen_before from matins.instance where id = $1;
