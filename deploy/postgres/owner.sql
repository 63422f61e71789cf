-- Run once, by the image, when the database is made. `matins` owns the database and is no superuser.
-- A login of their own for the services is made here: see docs/deployment.md.
\set password `cat /run/secrets/database_password`
create role matins login password :'password';
create database matins owner matins;
revoke all on database matins from public;
