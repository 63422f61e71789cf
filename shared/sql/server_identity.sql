-- Names the server and its timeline, which is another one after each promotion and each restore to a point in time. Null on
-- a standby, which has no timeline of its own.
select case when not pg_is_in_recovery() then
            (select system_identifier from pg_control_system())::text || '/'
            || left(pg_walfile_name(pg_current_wal_lsn()), 8) end as server;
