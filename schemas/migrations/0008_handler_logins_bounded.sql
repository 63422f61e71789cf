-- What a job's own login gives to the functions is kept within what every reader of the ledger can read: times that are
-- near, texts that are short. An endless time in one row would end whoever closes its occurrence.
create or replace function matins.settle_rows(
    occurrence_id bigint, scheduled_at timestamptz, accounts text[], epochs bigint[], states text[], charged integer[],
    waits interval[], error_classes text[], errors text[], nothing_to_do boolean[], started_at timestamptz,
    worker text, published_at timestamptz, trace_context text)
returns table (account text, epoch bigint, state text, isolated boolean, wait interval, settled_at timestamptz)
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    began constant timestamptz := least(greatest($11, transaction_timestamp()), clock_timestamp());
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
           started_at = began,
           finished_at = case when given.state <> 'pending' then greatest(clock_timestamp(), began) end,
           not_before = case when given.state = 'pending'
                             then clock_timestamp() + least(greatest(given.wait, interval '0'), interval '30 days')
                             when given.state = 'succeeded' then l.not_before end,
           published_at = case when given.state <> 'pending'
                               then coalesce(l.published_at, least(greatest($13, l.scheduled_at), clock_timestamp())) end,
           error_class = case when given.state <> 'succeeded' then left(given.error_class, 200) end,
           error = case when given.state <> 'succeeded' then left(given.error, 2000) end,
           worker = left($12, 100),
           trace_context = case when given.state = 'succeeded' then l.trace_context else left($14, 500) end
      from given
     where l.occurrence_id = given.occurrence_id and l.account = given.account and l.scheduled_at = $2
       and l.state = 'pending' and l.epoch = given.epoch
    returning l.account, l.epoch, l.state, l.isolated, given.wait, clock_timestamp();
end
$$;

-- As before, for values too that only SQL can write.
create or replace function matins.settle(
    ticket text, result jsonb default null, nothing_to_do boolean default false) returns void
language plpgsql security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
    given jsonb := $1::jsonb;
begin
    perform matins.refuse_others_occurrence((given ->> 'occurrence_id')::bigint);
    if octet_length($2::text) > 8192 then
        raise string_data_right_truncation using message = 'a result of more than 4 KiB cannot be kept';
    end if;
    -- What whoever reads the row could not read: a number beyond a double's, or too much inside of one another.
    if jsonb_path_exists($2, 'strict $.** ? (@.type() == "number" && (@ > 1e308 || @ < -1e308))')
       or jsonb_path_exists($2, 'strict $.**{64}') then
        raise invalid_parameter_value using message = 'a result holds no number beyond 1e308, and no 64 levels';
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

-- Any login may take an advisory lock, and with it keep the month's partition from everybody. This lock, which attaching
-- takes anyway, needs a right on the ledger.
create or replace function matins.ensure_ledger_partition(instant timestamptz) returns void
language plpgsql security definer
set search_path = pg_catalog, pg_temp set timezone to 'UTC' set datestyle to 'ISO, YMD' as $$
declare
    lower_bound timestamptz := date_trunc('month', instant at time zone 'UTC') at time zone 'UTC';
    upper_bound timestamptz := (date_trunc('month', instant at time zone 'UTC') + interval '1 month') at time zone 'UTC';
    partition_name text := 'ledger_' || to_char(instant at time zone 'UTC', 'YYYY_MM');
begin
    if to_regclass('matins.' || quote_ident(partition_name)) is not null then
        return;
    end if;
    lock table matins.ledger in share update exclusive mode;
    -- A query sees what the lock's last holder committed; to_regclass may still answer from this session's cache.
    if exists (select from pg_class where relnamespace = 'matins'::regnamespace and relname = partition_name) then
        return;
    end if;
    execute format('create table matins.%I (like matins.ledger including all)', partition_name);
    execute format('alter table matins.%I set (autovacuum_vacuum_scale_factor = 0.05, fillfactor = 90)', partition_name);
    execute format('alter table matins.ledger attach partition matins.%I for values from (%L) to (%L)',
                   partition_name, lower_bound, upper_bound);
end
$$;
