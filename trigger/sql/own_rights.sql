-- Reads what this login may really do with the schema's objects, by whichever role, column by column; and in the database.
with relation as (
    select c.oid, c.relname::text as name, c.relkind
      from pg_class c
     where c.relnamespace = 'matins'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S'))
select 'table' as kind, relation.name, verb.name as verb, a.attname::text as column_name
  from relation
 cross join (values ('select'), ('insert'), ('update'), ('references')) verb (name)
  join pg_attribute a on a.attrelid = relation.oid and a.attnum > 0 and not a.attisdropped
 where relation.relkind <> 'S' and has_column_privilege(session_user, relation.oid, a.attnum, verb.name)
union all
select 'table', relation.name, verb.name, ''
  from relation
 cross join (values ('delete'), ('truncate'), ('trigger')) verb (name)
 where relation.relkind <> 'S' and has_table_privilege(session_user, relation.oid, verb.name)
union all
select 'sequence', relation.name, verb.name, ''
  from relation
 cross join (values ('select'), ('usage'), ('update')) verb (name)
 where relation.relkind = 'S' and has_sequence_privilege(session_user, relation.oid, verb.name)
union all
select 'function', p.proname || '(' || oidvectortypes(p.proargtypes) || ')', 'execute', ''
  from pg_proc p
 where p.pronamespace = 'matins'::regnamespace and has_function_privilege(session_user, p.oid, 'execute')
union all
select 'schema', 'matins', verb.name, ''
  from (values ('usage'), ('create')) verb (name)
 where has_schema_privilege(session_user, 'matins', verb.name)
union all
select 'database', current_database()::text, 'create', ''
 where has_database_privilege(session_user, current_database(), 'create');
