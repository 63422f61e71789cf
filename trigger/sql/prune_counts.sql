-- Counts what belongs to pruned ledgers elsewhere: watermarks of publishing, attempts to claim, processes that have ended
-- before, and what was to be told of alerts that were over. $1 before.
select (select count(*) from matins.publication p join matins.occurrence o on o.id = p.occurrence_id
         where o.scheduled_at < $1) as publications,
       (select count(*) from matins.attempt where scheduled_at < $1) as attempts,
       (select count(*) from matins.instance where stopped_at < $1) as instances,
       (select count(*) from matins.notification n left join matins.alert a on a.id = n.alert_id
         where n.created_at < least($1::timestamptz, clock_timestamp() - interval '8 days')
           and (a.id is null or a.closed_at < $1)) as notifications;
