-- Writes a page's ledger rows, behind the cursor's move in the same transaction. An account that has its row keeps it.
-- One that cannot be an account's id is recorded as failed at once, so that it isn't lost.
-- $1 occurrence id, $2 scheduled_at, $3 generation, $4 position before the page, $5 accounts, $6 what is wrong with each
-- (null: nothing), $7 now.
with written as (
    insert into matins.ledger (occurrence_id, scheduled_at, account, position, generation,
                               state, finished_at, error_class, error)
    select $1, $2, given.account, $4::bigint + given.place, $3,
           case when given.problem is null then 'pending' else 'failed' end,
           case when given.problem is not null then coalesce($7::timestamptz, clock_timestamp()) end,
           case when given.problem is not null then 'invalid_account' end,
           given.problem
      from unnest($5::text[], $6::text[]) with ordinality as given (account, problem, place)
     order by given.place
    on conflict (occurrence_id, account, scheduled_at) do nothing
    returning state)
select count(*) as written, count(*) filter (where state = 'failed') as invalid from written;
