-- Adds what the accounts of a chunk used in the window to their totals, and tells what became of each: `problem` is
-- null for one that was done, `used` false for one that used nothing.
-- Race: chunks that add to the same totals. Rows are taken in key order, so they wait for each other and never deadlock.
-- Parameters: $1 accounts, $2 since, $3 until, $4 occurrence.
with asked as (
    select unnest($1::text[]) collate "C" as id),
known as (
    select account.id, account.anchor_day, account.zone, account.tax_id
      from billing.account
      join asked on asked.id = account.id),
used as (
    select known.id, billing.period_start(usage_event.at, known.anchor_day, known.zone) as period_start,
           sum(usage_event.units) as units
      from known
      join billing.usage_event on usage_event.account = known.id
     where known.tax_id is not null and usage_event.at > $2 and usage_event.at <= $3
     group by 1, 2),
added as (
    insert into billing.usage_total (account, period_start, units)
    select used.id, used.period_start, used.units from used order by used.id, used.period_start
    on conflict (account, period_start) do update set units = usage_total.units + excluded.units),
touched as (
    insert into billing.touch (account, occurrence)
    select distinct used.id, $4::text from used)
select asked.id as account,
       case when known.id is null then 'no such account'
            when known.tax_id is null then 'no tax id' end as problem,
       exists (select from used where used.id = asked.id) as used
  from asked
  left join known on known.id = asked.id
