-- Reads before when a message of a queue must have been published to be lost: older than the floor, and than one that
-- was started since, or than a time at which the queue was empty, each by a margin: a message is on its way to the
-- broker for a while. Null: no evidence, nothing is lost.
-- $1 queue, $2 floor, $3 margin, $4 now.
select least(coalesce($4::timestamptz, clock_timestamp()) - $2::interval,
             greatest(started_through, empty_at) - $3::interval) as lost_before
  from matins.work_queue
 where name = $1 and (started_through is not null or empty_at is not null);
