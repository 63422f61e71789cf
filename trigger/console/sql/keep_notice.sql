-- Keeps what a person is told of the form that they have sent last. $1 digest of the session's token, $2 the form's own
-- mark, $3 the notice.
update matins.console_session
   set notice = $3
 where token_digest = $1 and form = $2;
