-- Lists who follows the database's changes. How far each is, the server tells its monitors alone: nulls for anybody else.
select r.application_name as name, r.state, r.sync_state,
       extract(epoch from r.replay_lag)::double precision as lag_seconds
  from pg_stat_replication r
 order by r.application_name nulls last, r.pid;
