-- Says that somebody has gone to a page, which puts off the end of an idle session. $1 digest of the token.
update matins.console_session
   set seen_at = greatest(seen_at, clock_timestamp())
 where token_digest = $1;
