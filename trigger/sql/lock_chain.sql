-- Takes the right to add to the audit trail's chain, for the rest of the transaction: of several sealers one goes on, and
-- the others have nothing to do. What is read behind it cannot change before the commit.
select pg_try_advisory_xact_lock(hashtextextended('matins.audit_chain', 0));
