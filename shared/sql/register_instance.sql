-- Makes a process known. $1 id, $2 kind, $3 host, $4 version, $5 region, $6 message version, $7 tzdata version, $8 jobs,
-- $9 the queues it counts on, $10 fingerprints of its definitions by job, null if they are known.
insert into matins.instance as known (id, kind, host, version, region, message_version, tzdata_version, jobs, queues, definitions)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
on conflict (id) do update
   set jobs = excluded.jobs, queues = excluded.queues, definitions = coalesce(excluded.definitions, known.definitions),
       seen_at = clock_timestamp(), stopped_at = null
returning started_at;
