-- Reads the entries of one kind that say what was done to the audit trail itself, in order. $1 kind.
select id, detail from matins.audit where kind = $1 order by id;
