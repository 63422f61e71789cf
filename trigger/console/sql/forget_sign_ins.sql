-- Forgets sign-ins that nobody has ended. $1 kept for.
delete from matins.console_sign_in
 where created_at <= clock_timestamp() - $1::interval;
