-- Tells how far one of the ledger's monthly tables has been taken away; no row once it is gone. $1 its name.
select i.inhrelid is not null as attached, coalesce(i.inhdetachpending, false) as detaching
  from pg_class c
  left join pg_inherits i on i.inhrelid = c.oid and i.inhparent = 'matins.ledger'::regclass
 where c.relnamespace = 'matins'::regnamespace and c.relname = $1;
