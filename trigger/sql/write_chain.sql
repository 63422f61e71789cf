-- Adds a batch to the chain. A position that is taken, or a row that is sealed already, fails the batch: nobody can have
-- written it but behind the lock's back. $1 positions, $2 ids, $3 digests, $4 salts, $5 hashes.
insert into matins.audit_chain (position, audit_id, digest, salt, hash)
select * from unnest($1::bigint[], $2::bigint[], $3::bytea[], $4::bytea[], $5::bytea[]);
