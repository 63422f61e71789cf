-- Takes a form for sent, so that of one that is sent twice the first is acted on; says whether this was the first.
-- $1 digest of the session's token, $2 the form's own mark.
update matins.console_session
   set form = $2, notice = null
 where token_digest = $1 and form is distinct from $2
returning true;
