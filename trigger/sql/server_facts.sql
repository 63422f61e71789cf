-- Reads what `doctor` judges of the database server.
select current_setting('server_version_num')::integer as version, current_setting('server_version') as version_text,
       pg_is_in_recovery() as in_recovery, current_setting('default_transaction_read_only')::boolean as read_only,
       current_setting('max_connections')::integer as max_connections,
       current_setting('superuser_reserved_connections')::integer as reserved_connections,
       (select count(*) from pg_stat_activity where backend_type = 'client backend') as connections;
