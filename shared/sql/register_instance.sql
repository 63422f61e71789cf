-- Makes a process known. $1 id, $2 kind, $3 host, $4 version, $5 region, $6 message version, $7 tzdata version, $8 jobs.
insert into matins.instance (id, kind, host, version, region, message_version, tzdata_version, jobs)
values ($1, $2, $3, $4, $5, $6, $7, $8)
on conflict (id) do update set jobs = excluded.jobs, seen_at = clock_timestamp(), stopped_at = null
returning started_at;
