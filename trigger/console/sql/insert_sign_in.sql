-- Notes that a browser begins to sign in, unless so many have begun and not ended that somebody makes them up.
-- $1 digest of the state, $2 digest of what the browser keeps, $3 where to go afterwards, $4 the most there may be.
insert into matins.console_sign_in (state_digest, browser_digest, return_path)
select $1, $2, $3
 where (select count(*) from (select from matins.console_sign_in limit $4) as begun) < $4
returning true;
