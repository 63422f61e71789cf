-- Forgets signed calls that are too old to be repeated: by then their time is outside of every tolerance.
-- $1 kept for, $2 now.
delete from matins.signed_call
 where received_at < coalesce($2::timestamptz, clock_timestamp()) - $1::interval;
