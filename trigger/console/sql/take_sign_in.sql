-- Takes a sign-in that was begun, so that of several who come with the same state one has it. Another browser's is left
-- to that browser. $1 digest of the state, $2 digest of what the browser keeps, $3 kept for.
delete from matins.console_sign_in
 where state_digest = $1 and browser_digest = $2
   and created_at > clock_timestamp() - $3::interval
returning return_path;
