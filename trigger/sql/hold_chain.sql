-- Keeps the sealer from the audit trail for the rest of the transaction: what it reads next is what this has left.
select pg_advisory_xact_lock(hashtextextended('matins.audit_chain', 0));
