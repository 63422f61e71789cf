-- A job's own database login, and the only ways in which it reaches the ledger: to take rows of its own job in a
-- transaction, and to settle them. Rights on these are granted by `migrate`, which also says whose login is whose.
create table matins.handler_login (
    login name not null,
    job   text not null check (job ~ '^[a-z][a-z0-9_-]{0,62}$'),
    primary key (login, job)
);

-- Refuses an occurrence of another job than the session's own login is for. What the session has set its role to is of
-- no interest: nobody but a superuser can change its session_user.
create function matins.refuse_others_occurrence(occurrence_id bigint) returns void
language plpgsql set search_path = pg_catalog, pg_temp as $$
begin
    if not exists (
        select from matins.occurrence o
          join matins.handler_login h on h.job = o.job
         where o.id = $1 and h.login = session_user) then
        raise insufficient_privilege
            using message = format('login %s is not that of the job of occurrence %s', session_user, coalesce($1::text, 'null')),
                  hint = 'A job names its login in its declaration, and migrate records it.';
    end if;
end
$$;
revoke all on function matins.refuse_others_occurrence(bigint) from public;

-- Takes accounts for the transaction of a handler's login, as the worker's own start does: what another has locked, what
-- isn't due or what belongs to an occurrence whose dispatch is over, is left out.
create function matins.start(occurrence_id bigint, scheduled_at timestamptz, accounts text[], generation integer)
returns table (account text, epoch bigint, attempts integer, starts integer, key_salt text, trace_context text,
               started_at timestamptz)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform matins.refuse_others_occurrence($1);
    return query
    with given as materialized (
        select $1::bigint as occurrence_id, one.account
          from unnest($3::text[]) with ordinality as one (account, place)
         where one.place between 1 and 10000)
    select l.account, l.epoch, l.attempts, l.starts, l.key_salt, l.trace_context, clock_timestamp() as started_at
      from given
      join matins.ledger l
        on l.occurrence_id = given.occurrence_id and l.account = given.account and l.scheduled_at = $2
       and l.state = 'pending' and l.generation = $4
       and (l.not_before is null or l.not_before <= clock_timestamp())
     where not exists (select 1 from matins.occurrence o where o.id = $1 and o.ending is not null)
       and not exists (select 1 from matins.environment e where e.held_since is not null)
     order by l.account
       for update of l skip locked;
end
$$;
revoke all on function matins.start(bigint, timestamptz, text[], integer) from public;

-- Settles accounts that `start` took in this transaction: only what is still as it was then, by state and epoch. Gives
-- the rows that it moved.
create function matins.settle_rows(
    occurrence_id bigint, scheduled_at timestamptz, accounts text[], epochs bigint[], states text[], charged integer[],
    waits interval[], error_classes text[], errors text[], nothing_to_do boolean[], started_at timestamptz,
    worker text, published_at timestamptz, trace_context text)
returns table (account text, epoch bigint, state text, isolated boolean, wait interval, settled_at timestamptz)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
    perform matins.refuse_others_occurrence($1);
    if exists (select from unnest($5, $6) as one (state, charged)
                where (one.state in ('succeeded', 'pending', 'failed') and one.charged in (0, 1)) is not true) then
        raise invalid_parameter_value using message = 'states are succeeded, pending or failed, and charged is 0 or 1';
    end if;
    return query
    with given as materialized (
        select $1::bigint as occurrence_id, one.*
          from unnest($3, $4, $5, $6, $7, $8, $9, $10) with ordinality
               as one (account, epoch, state, charged, wait, error_class, error, nothing_to_do, place)
         where one.place between 1 and 10000)
    update matins.ledger l
       set state = given.state, epoch = l.epoch + 1, attempts = l.attempts + given.charged,
           starts = case when given.charged > 0 then 0 else l.starts end,
           isolated = l.isolated and given.state = 'succeeded',
           nothing_to_do = given.nothing_to_do and given.state = 'succeeded',
           started_at = $11,
           finished_at = case when given.state <> 'pending' then greatest(clock_timestamp(), $11) end,
           not_before = case when given.state = 'pending' then clock_timestamp() + given.wait
                             when given.state = 'succeeded' then l.not_before end,
           published_at = case when given.state <> 'pending' then coalesce(l.published_at, $13) end,
           error_class = case when given.state <> 'succeeded' then given.error_class end,
           error = case when given.state <> 'succeeded' then given.error end,
           worker = $12,
           trace_context = case when given.state = 'succeeded' then l.trace_context else $14 end
      from given
     where l.occurrence_id = given.occurrence_id and l.account = given.account and l.scheduled_at = $2
       and l.state = 'pending' and l.epoch = given.epoch
    returning l.account, l.epoch, l.state, l.isolated, given.wait, clock_timestamp();
end
$$;
revoke all on function matins.settle_rows(
    bigint, timestamptz, text[], bigint[], text[], integer[], interval[], text[], text[], boolean[], timestamptz, text,
    timestamptz, text) from public;

-- Settles, as succeeded, the account of an outside call, in whichever transaction the job's own code has: with it the
-- code's effect and the ledger's row commit together. The ticket is what the call was given. Raises MF001 when another
-- worker has taken the account over since, so that the effect is undone too.
create function matins.settle(ticket text, result jsonb default null, nothing_to_do boolean default false) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    given jsonb := $1::jsonb;
begin
    perform matins.refuse_others_occurrence((given ->> 'occurrence_id')::bigint);
    if octet_length($2::text) > 8192 then
        raise string_data_right_truncation using message = 'a result of more than 4 KiB cannot be kept';
    end if;
    update matins.ledger l
       set state = 'succeeded', epoch = l.epoch + 1, attempts = l.attempts + 1, starts = 0, lease_until = null,
           finished_at = clock_timestamp(), not_before = null, error_class = null, error = null,
           nothing_to_do = coalesce($3, false), result = $2
     where l.occurrence_id = (given ->> 'occurrence_id')::bigint
       and l.scheduled_at = (given ->> 'scheduled_at')::timestamptz
       and l.account = given ->> 'account' and l.state = 'running' and l.epoch = (given ->> 'epoch')::bigint;
    if not found then
        raise exception using errcode = 'MF001',
            message = format('account %s is no longer this call''s: another has taken it over, or it is settled',
                             coalesce(given ->> 'account', 'null'));
    end if;
end
$$;
revoke all on function matins.settle(text, jsonb, boolean) from public;
