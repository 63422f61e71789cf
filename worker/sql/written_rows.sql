-- Counts what the open transaction has written so far, table by table. Rows of what was rolled back to a savepoint count.
select format('%I.%I', schemaname, relname) as name,
       n_tup_ins as inserted, n_tup_upd as updated, n_tup_del as deleted
  from pg_stat_xact_user_tables
 where n_tup_ins + n_tup_upd + n_tup_del > 0
 order by 1;
