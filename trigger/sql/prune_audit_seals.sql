-- Deletes the batches of the chain's pruned beginning; the last batch stays in any case, since the sealer goes on from it.
-- $1 through this position.
delete from matins.audit_seal
 where position <= $1 and number < (select max(s.number) from matins.audit_seal s);
