-- Issues one invoice with its lines, and gives how many it issued: 1, or 0 if the period was invoiced before.
-- Race: two sessions that issue the same invoice. The second waits for the first on the unique key, then does nothing.
-- `on conflict` names no key, so that a test may drop it and let the ledger alone decide.
-- Parameters: $1 account, $2 period_start, $3 period_end, $4 total, $5 occurrence, then the lines as arrays:
-- $6 descriptions, $7 quantities, $8 unit prices, $9 amounts.
with issued as (
    insert into billing.invoice (account, period_start, period_end, total, issued_for)
    values ($1, $2, $3, $4, $5)
    on conflict do nothing
    returning id),
lined as (
    insert into billing.invoice_line (invoice, line, description, quantity, unit_price, amount)
    select issued.id, line.number, line.description, line.quantity, line.unit_price, line.amount
      from issued,
           unnest($6::text[], $7::numeric[], $8::numeric[], $9::numeric[])
               with ordinality as line (description, quantity, unit_price, amount, number)),
touched as (
    insert into billing.touch (account, occurrence)
    select $1, $5 from issued)
select count(*) from issued
