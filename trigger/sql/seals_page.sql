-- Reads a page of the batches in which the audit trail was sealed, in order; empty ones have no head of their own.
-- $1 behind this number, $2 behind this position, $3 at most.
select number, era, first_look, position, hash, highest_id, sealed_at
  from matins.audit_seal
 where number > $1 and position > $2 and rows > 0
 order by number
 limit $3;
