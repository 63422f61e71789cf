-- Writes what is to be told of alerts into the outbox, in the transaction that changes them. $1 alerts, $2 events, $3 bodies,
-- $4 now.
insert into matins.notification (alert_id, event, body, created_at)
select given.alert_id, given.event, given.body, coalesce($4::timestamptz, clock_timestamp())
  from unnest($1::bigint[], $2::text[], $3::jsonb[]) with ordinality as given (alert_id, event, body, place)
 order by given.place;
