-- Reads who may do what with the objects of the schema: tables and their columns, sequences, functions, the schema
-- itself; of every role but the object's owner. That a right may be handed on counts as another one.
with entry (kind, name, owner, acl, column_name) as (
    select 'schema', n.nspname::text, n.nspowner, coalesce(n.nspacl, acldefault('n', n.nspowner)), ''
      from pg_namespace n where n.nspname = 'matins'
    union all
    select case c.relkind when 'S' then 'sequence' else 'table' end, c.relname::text, c.relowner,
           coalesce(c.relacl, acldefault(case c.relkind when 'S' then 's' else 'r' end::"char", c.relowner)), ''
      from pg_class c
     where c.relnamespace = 'matins'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
    union all
    select 'table', c.relname::text, c.relowner, a.attacl, a.attname::text
      from pg_class c
      join pg_attribute a on a.attrelid = c.oid and a.attacl is not null and not a.attisdropped
     where c.relnamespace = 'matins'::regnamespace
    union all
    select 'function', p.proname || '(' || oidvectortypes(p.proargtypes) || ')', p.proowner,
           coalesce(p.proacl, acldefault('f', p.proowner)), ''
      from pg_proc p where p.pronamespace = 'matins'::regnamespace)
select coalesce(r.rolname::text, 'public') as grantee, entry.kind, entry.name,
       handing_on.words || lower(held.privilege_type) as verb, entry.column_name
  from entry
 cross join lateral aclexplode(entry.acl) held
 cross join (values (''), ('grant option for ')) as handing_on (words)
  left join pg_roles r on r.oid = held.grantee
 where held.grantee <> entry.owner and (handing_on.words = '' or held.is_grantable);
