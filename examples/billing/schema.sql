-- The billing example's own tables. Run as a whole, any number of times, by `examples.billing.data.make_schema`, which
-- holds an advisory lock meanwhile: `create … if not exists` alone fails when two sessions run it at once.
create schema if not exists billing;

create table if not exists billing.plan (
    name           text primary key,
    price          numeric(12,2) not null check (price >= 0),
    included_units numeric(18,6) not null check (included_units >= 0),
    unit_price     numeric(12,6) not null check (unit_price >= 0)
);

create table if not exists billing.account (
    -- Opaque: compared byte by byte, whatever the database's collation makes of it.
    id         text collate "C" primary key check (id <> ''),
    -- What the account sources page by, apart from the id.
    number     bigint generated always as identity unique,
    name       text not null,
    plan       text not null references billing.plan (name),
    -- A period ends at the start of this day in `zone`; in a shorter month, of its last day.
    anchor_day integer not null check (anchor_day between 1 and 31),
    -- The check raises for a name that the server does not know: one such row would end every query over all accounts.
    zone       text not null check ((timestamptz '2000-01-01 00:00+00' at time zone zone) is not null),
    tax_id     text check (tax_id <> ''),
    -- For demonstrations: takes long; fails in its first so many tries.
    slow       boolean not null default false,
    flaky      integer not null default 0 check (flaky >= 0),
    created_at timestamptz not null default clock_timestamp()
);
create index if not exists account_due on billing.account (anchor_day, number);

create table if not exists billing.usage_event (
    account text collate "C" not null references billing.account (id),
    at      timestamptz not null,
    units   numeric(18,6) not null
);
create index if not exists usage_event_account on billing.usage_event (account, at);

-- Added to by each roll-up, never computed anew: a roll-up that took effect twice would show in `units`.
create table if not exists billing.usage_total (
    account      text collate "C" not null references billing.account (id),
    period_start date not null,
    units        numeric(24,6) not null,
    primary key (account, period_start)
);

create table if not exists billing.invoice (
    id           bigint generated always as identity primary key,
    account      text collate "C" not null references billing.account (id),
    period_start date not null,
    -- The first day that the period does not cover.
    period_end   date not null,
    total        numeric(12,2) not null,
    -- The occurrence that issued it, in its written form.
    issued_for   text not null,
    check (period_start < period_end),
    constraint invoice_once unique (account, period_start)
);

create table if not exists billing.invoice_line (
    invoice     bigint not null references billing.invoice (id),
    line        integer not null check (line > 0),
    description text not null,
    quantity    numeric(24,6) not null,
    unit_price  numeric(12,6) not null,
    -- quantity × unit_price, rounded half to even at two places; the invoice's total is the sum of its lines.
    amount      numeric(12,2) not null,
    primary key (invoice, line)
);

-- One row for each effect, written in the effect's own transaction. Nothing in it is unique, so that it can show an
-- effect that was made twice.
create table if not exists billing.touch (
    account    text collate "C" not null,
    occurrence text not null,
    at         timestamptz not null default clock_timestamp(),
    txid       bigint not null default pg_current_xact_id()::text::bigint
);

-- The day of a month on which an account with this anchor closes its period; `month` is any time in that month.
create or replace function billing.closing_day(month timestamp, anchor_day integer) returns date
language sql immutable parallel safe as $$
    select (date_trunc('month', month))::date - 1
           + least(anchor_day, extract(day from date_trunc('month', month) + interval '1 month - 1 day')::integer)
$$;

-- The periods that closed after `since`, up to and including `until`. Instants are those of local midnight: where a
-- clock change skips it, of the change; where it comes twice, of the second.
create or replace function billing.closings(anchor_day integer, zone text, since timestamptz, until timestamptz)
returns table (period_start date, period_end date, starts_at timestamptz, ends_at timestamptz)
language sql immutable parallel safe as $$
    select first_day, last_day, first_day::timestamp at time zone zone, last_day::timestamp at time zone zone
      from generate_series(date_trunc('month', since at time zone zone), until at time zone zone, interval '1 month') as month,
           lateral (select billing.closing_day(month - interval '1 month', anchor_day),
                           billing.closing_day(month, anchor_day)) as day (first_day, last_day)
     where last_day::timestamp at time zone zone > since
       and last_day::timestamp at time zone zone <= until
$$;

-- The first day of the period that an instant lies in, by the same instants as `closings`.
create or replace function billing.period_start(instant timestamptz, anchor_day integer, zone text) returns date
language sql immutable parallel safe as $$
    select case when billing.closing_day(instant at time zone zone, anchor_day)::timestamp at time zone zone <= instant
                then billing.closing_day(instant at time zone zone, anchor_day)
                else billing.closing_day((instant at time zone zone) - interval '1 month', anchor_day) end
$$;

-- Every anchor that closes anywhere on Earth in the window: narrows by an index what `closings` then decides exactly.
create or replace function billing.anchors_near(since timestamptz, until timestamptz) returns integer[]
language sql immutable parallel safe as $$
    select array_agg(distinct anchor)
      from generate_series(date_trunc('day', since at time zone 'UTC' - interval '15 hours'),
                           (until at time zone 'UTC') + interval '15 hours', interval '1 day') as day,
           generate_series(extract(day from day)::integer,
                           case when extract(day from day + interval '1 day') = 1 then 31 else extract(day from day)::integer end)
               as anchor
$$;
