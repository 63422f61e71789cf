-- What the contestants read and write. The role is the one that the jobs' code runs under.
create schema bench;
create table bench.account (id text collate "C" primary key);
create table bench.invoice (
    account   text collate "C" not null,
    period    text not null,
    amount    integer not null,
    issued_at timestamptz not null default clock_timestamp(),
    primary key (account, period)
);
do $$ begin
    if not exists (select from pg_roles where rolname = 'matins_bench') then
        create role matins_bench nologin;
    end if;
end $$;
grant usage on schema bench to matins_bench;
grant select on bench.account to matins_bench;
grant select, insert on bench.invoice to matins_bench;
