-- Reads what anybody may know of the database: its server, its size, and how far its schema is.
select current_setting('server_version') as version, current_database() as name, pg_is_in_recovery() as in_recovery,
       pg_database_size(current_database()) as bytes, pg_postmaster_start_time() as started_at,
       (select s.numbackends from pg_stat_database s where s.datname = current_database()) as connections,
       current_setting('max_connections')::integer as most_connections,
       applied.version as schema_version, applied.name as schema_name, applied.applied_at
  from (values (1)) as one
  left join lateral (
       select m.version, m.name, m.applied_at from matins.migration m order by m.version desc limit 1) applied on true;
