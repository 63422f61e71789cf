-- Reads what roles are; one that doesn't exist gives no row. $1 names.
select r.rolname::text as name, r.rolinherit as inherits, r.rolcanlogin as can_login, r.rolsuper as is_superuser,
       r.rolcreaterole as creates_roles, r.rolcreatedb as creates_databases, r.rolreplication as replicates,
       r.rolbypassrls as bypasses_row_security
  from pg_roles r
 where r.rolname = any ($1::text[]);
