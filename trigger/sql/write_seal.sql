-- Records a batch of the chain and how far all is sealed by it; in the batch's transaction, which began to write after all
-- that it seals was over.
-- $1 number, $2 era, $3 first look not over, $4 server, $5 position, $6 hash, $7 rows, $8 through xid, $9 through id,
-- $10 highest id, $11 instance.
insert into matins.audit_seal (number, era, first_look, server, position, hash, rows, through_xid, through_id, highest_id,
                               sealed_by)
values ($1, $2, $3, $4, $5, $6, $7, $8::text::xid8, $9, $10, $11);
