-- Takes the accounts' locks, so that two occurrences of a job never run one account at once: what another transaction
-- holds is skipped. In a statement before the look at the other occurrences: what that reads is then what the locks'
-- former holders have left. A lock that the fan-out of an earlier release has not written is made here.
-- $1 job, $2 accounts.
with given as materialized (
    select distinct one.account from unnest($2::text[]) as one (account))
, missing as (
    insert into matins.account_lock (job, account)
    select $1, given.account
      from given
     where not exists (select from matins.account_lock k where k.job = $1 and k.account = given.account)
     order by given.account
    on conflict do nothing
    returning account)
, locked as (
    select k.account
      from given
      join matins.account_lock k on k.job = $1 and k.account = given.account
     order by k.account
       for update of k skip locked)
select account from locked
union all
select account from missing;
