-- Lists the processes that were seen within the last minute.
select id, kind, host, version, region, tzdata_version, message_version, jobs, definitions, queues, started_at, seen_at,
       extract(epoch from clock_timestamp() - seen_at)::double precision as silent_seconds
  from matins.instance
 where stopped_at is null and seen_at > clock_timestamp() - interval '1 minute'
 order by kind, started_at;
