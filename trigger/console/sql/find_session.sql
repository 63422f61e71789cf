-- Finds who is signed in with a token, unless they were idle or signed in for too long; `stale` asks for a touch.
-- $1 digest of the token, $2 longest idle, $3 longest session.
select name, means, issuer, subject, claims, form, notice,
       seen_at < clock_timestamp() - $2::interval / 10 as stale
  from matins.console_session
 where token_digest = $1
   and seen_at > clock_timestamp() - $2::interval
   and created_at > clock_timestamp() - $3::interval;
