-- Names the roles that may not connect to this database, by whichever right. $1 roles.
select r.rolname::text as role, current_database()::text as database
  from pg_roles r
 where r.rolname = any ($1::text[]) and not has_database_privilege(r.oid, current_database(), 'CONNECT');
