-- Reads before when a message of a queue must have been published to be lost: older than the floor, and than one that
-- was started since, by a margin, or than a time at which the queue was empty. Null: no evidence, nothing is lost.
-- $1 queue, $2 floor, $3 margin, $4 now.
select least(coalesce($4::timestamptz, clock_timestamp()) - $2::interval,
             greatest(started_through - $3::interval, empty_at)) as lost_before
  from matins.work_queue
 where name = $1 and (started_through is not null or empty_at is not null);
