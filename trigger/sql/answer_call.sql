-- Keeps what a signed call was answered with, in the transaction that remembers it.
-- $1 caller, $2 webhook id, $3 occurrence id.
update matins.signed_call set occurrence_id = $3 where caller = $1 and webhook_id = $2;
