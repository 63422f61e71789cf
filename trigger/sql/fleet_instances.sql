-- Lists the processes that were seen within the last day: those that live, those that have vanished without a word, and those
-- that have said that they end. Who is silent for a minute counts as vanished, as it does for the sweep, which writes that
-- down later than it was so.
select i.id, i.kind, i.host, i.version, i.region, i.tzdata_version, i.message_version, i.started_at, i.seen_at, i.skew,
       extract(epoch from clock_timestamp() - i.seen_at)::double precision as silent_seconds,
       case when i.stopped_at is null and i.seen_at > clock_timestamp() - interval '1 minute' then 'live'
            when i.stopped_at is null or i.stopped_at - i.seen_at >= interval '1 minute' then 'vanished'
            else 'ended' end as state
  from matins.instance i
 where i.seen_at > clock_timestamp() - interval '1 day'
 order by i.kind, i.started_at;
