-- Reads every role that this login is or is a member of, directly or not, with what each may do beyond tables, and whether
-- it owns anything of the schema.
select r.rolname::text as name, r.rolname = session_user as is_login, r.rolsuper as is_superuser,
       r.rolcreaterole as creates_roles, r.rolcreatedb as creates_databases, r.rolreplication as replicates,
       r.rolbypassrls as bypasses_row_security,
       exists (select from pg_class c where c.relnamespace = 'matins'::regnamespace and c.relowner = r.oid)
       or exists (select from pg_proc p where p.pronamespace = 'matins'::regnamespace and p.proowner = r.oid)
       or exists (select from pg_namespace n where n.nspname = 'matins' and n.nspowner = r.oid) as owns
  from pg_roles r
 where pg_has_role(session_user, r.oid, 'MEMBER')
 order by r.rolname <> session_user, r.rolname;
