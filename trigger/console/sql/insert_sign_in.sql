-- Notes that a browser begins to sign in. Of very many that were begun and not ended the oldest go: somebody makes them
-- up, and nobody else is to be kept out by that.
-- $1 digest of the state, $2 digest of what the browser keeps, $3 where to go afterwards, $4 the most that stay.
with forgotten as (
    delete from matins.console_sign_in
     where state_digest in (
           select state_digest from matins.console_sign_in order by created_at desc, state_digest offset $4))
insert into matins.console_sign_in (state_digest, browser_digest, return_path)
values ($1, $2, $3);
