-- One account with its plan, and a row for each of its periods that closed in the window (or one row without a period).
-- Parameters: $1 account, $2 since, $3 until. No race: the statement that issues an invoice decides.
select account.tax_id, account.slow, account.flaky,
       plan.name as plan, plan.price, plan.included_units, plan.unit_price,
       closing.period_start, closing.period_end,
       (select coalesce(sum(usage_event.units), 0)
          from billing.usage_event
         where usage_event.account = account.id
           and usage_event.at >= closing.starts_at and usage_event.at < closing.ends_at) as used_units
  from billing.account
  join billing.plan on plan.name = account.plan
  left join lateral billing.closings(account.anchor_day, account.zone, $2, $3) as closing
         on closing.ends_at > account.created_at
 where account.id = $1
 order by closing.period_end
