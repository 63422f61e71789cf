-- Run once, by the image, when the database is made: every login and every role of this deployment.
-- `matins` owns the database and what migrate makes in it; it is no superuser, and may not make roles. What each group
-- may do, migrate grants: docs/deployment.md.
\set owner_password `cat /run/secrets/database_owner_password`
\set trigger_password `cat /run/secrets/database_trigger_password`
\set worker_password `cat /run/secrets/database_worker_password`
\set operator_password `cat /run/secrets/database_operator_password`

create role matins login password :'owner_password';
create database matins owner matins;
revoke all on database matins from public;

create role matins_trigger nologin noinherit;
create role matins_worker nologin noinherit;
create role matins_reader nologin noinherit;

create role trigger login password :'trigger_password' in role matins_trigger;
create role worker login password :'worker_password' in role matins_worker;
create role operator login password :'operator_password' in role matins_trigger;
grant connect on database matins to trigger, worker, operator;

-- The example's jobs, each with a role of its own; their tables and rights are made by `data`, as matins.
create role job_invoice nologin;
create role job_usage nologin;
grant job_invoice, job_usage to matins_trigger, matins_worker with inherit false;
