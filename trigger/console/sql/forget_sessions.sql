-- Forgets sessions that are over. $1 longest idle, $2 longest session.
delete from matins.console_session
 where seen_at <= clock_timestamp() - $1::interval
    or created_at <= clock_timestamp() - $2::interval;
