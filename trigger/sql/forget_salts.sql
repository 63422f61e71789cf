-- Takes the salts of redacted rows away, so that what they said cannot be guessed from their digests. $1 ids.
update matins.audit_chain
   set salt = null
 where audit_id = any ($1::bigint[]);
