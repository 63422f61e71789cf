-- Lists the columns of every table of the schema, so that a right on a whole table can be compared column by column.
select c.relname::text as name, array_agg(a.attname::text) as columns
  from pg_class c
  join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
 where c.relnamespace = 'matins'::regnamespace and c.relkind in ('r', 'p')
 group by c.relname;
