-- Finds the accounts that must wait, and for how long before the next look: those whose lock another holds, that another
-- occurrence of the job executes, or that an earlier one has not done. An earlier one that still reads its accounts may
-- come to them. Behind `lock_accounts` in the same transaction. $1 occurrence id, $2 accounts, $3 those whose locks are
-- held, $4 now.
with clock as (select coalesce($4::timestamptz, clock_timestamp()) as now)
, mine as materialized (
    select id, job, scheduled_at, variant, opened_at from matins.occurrence where id = $1)
, others as materialized (
    select o.id, o.scheduled_at, o.sealed_at is null and o.ending is null as may_come,
           (o.scheduled_at, o.variant) < (mine.scheduled_at, mine.variant) as is_earlier
      from mine
      join matins.occurrence o on o.job = mine.job and o.id <> mine.id and o.state in ('claimed', 'running'))
select given.account,
       greatest(interval '1 second', least(interval '30 seconds', (clock.now - mine.opened_at) / 8)) as wait
  from clock, mine, unnest($2::text[]) as given (account)
 where given.account <> all ($3::text[])
    or exists (select from others where others.is_earlier and others.may_come)
    or exists (select from others
                 join matins.ledger l on l.occurrence_id = others.id and l.scheduled_at = others.scheduled_at
                  and l.account = given.account
                where l.finished_at is null and (others.is_earlier or l.state = 'running'));
