-- Records whose login is whose, for the jobs that are declared here; those of other jobs stay as they are.
-- $1 logins, $2 their jobs, $3 jobs that are declared here.
with given as (
    select one.login::name as login, one.job from unnest($1::text[], $2::text[]) as one (login, job))
, forgotten as (
    delete from matins.handler_login known
     where known.job = any ($3::text[])
       and not exists (select from given where given.login = known.login and given.job = known.job))
insert into matins.handler_login (login, job)
select login, job from given
on conflict do nothing;
