-- Reads the oldest and the newest version of messages that a live worker reads; null while none lives.
select min(message_version) as oldest, max(message_version) as newest
  from matins.instance
 where kind = 'worker' and stopped_at is null and seen_at > clock_timestamp() - interval '1 minute';
