-- One row for each account of a job whose accounts wait for the occurrences before: who starts it locks the row, so that
-- two occurrences never run one account at once. The fan-out writes it, so that no start has to wait for another's.
create table matins.account_lock (
    job      text not null,
    account  text collate "C" not null,
    -- Nobody writes it: a right to lock a row is granted on a column.
    lockable boolean not null default true,
    primary key (job, account)
);

-- Takes accounts for the transaction of a handler's login, as `start` does, of a job whose accounts wait for the
-- occurrences before: first their locks, then the rows, and only then a look at the other occurrences, each in a
-- statement of its own. `wait` is null for an account that may run now.
create function matins.start_in_turn(
    occurrence_id bigint, scheduled_at timestamptz, accounts text[], generation integer)
returns table (account text, epoch bigint, attempts integer, starts integer, key_salt text, trace_context text,
               started_at timestamptz, wait interval)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    its_job text;
    held text[];
begin
    perform matins.refuse_others_occurrence($1);
    select o.job into its_job from matins.occurrence o where o.id = $1;
    with given as materialized (
        select distinct one.account from unnest($3::text[]) with ordinality as one (account, place)
         where one.place between 1 and 10000)
    , missing as (
        insert into matins.account_lock (job, account)
        select its_job, l.account
          from given
          join matins.ledger l on l.occurrence_id = $1 and l.account = given.account and l.scheduled_at = $2
         where not exists (select from matins.account_lock k where k.job = its_job and k.account = given.account)
         order by l.account
        on conflict do nothing
        returning account)
    , locked as (
        select k.account
          from given
          join matins.account_lock k on k.job = its_job and k.account = given.account
         order by k.account
           for update of k skip locked)
    select coalesce(array_agg(both_ways.account), '{}') into held
      from (select locked.account from locked union all select missing.account from missing) both_ways;
    return query
    with mine as materialized (
        select o.id, o.job, o.scheduled_at, o.variant, o.opened_at from matins.occurrence o where o.id = $1)
    , others as materialized (
        select o.id, o.scheduled_at, o.sealed_at is null and o.ending is null as may_come,
               (o.scheduled_at, o.variant) < (mine.scheduled_at, mine.variant) as is_earlier
          from mine
          join matins.occurrence o on o.job = mine.job and o.id <> mine.id and o.state in ('claimed', 'running'))
    , taken as (
        select * from matins.start($1, $2, $3, $4))
    select taken.account, taken.epoch, taken.attempts, taken.starts, taken.key_salt, taken.trace_context,
           taken.started_at,
           case when taken.account <> all (held)
                  or exists (select from others where others.is_earlier and others.may_come)
                  or exists (select from others
                               join matins.ledger l on l.occurrence_id = others.id
                                and l.scheduled_at = others.scheduled_at and l.account = taken.account
                              where l.finished_at is null and (others.is_earlier or l.state = 'running'))
                then greatest(interval '1 second',
                              least(interval '30 seconds', (clock_timestamp() - mine.opened_at) / 8)) end
      from taken, mine
     order by taken.account;
end
$$;
revoke all on function matins.start_in_turn(bigint, timestamptz, text[], integer) from public;
