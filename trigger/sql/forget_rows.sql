-- Gives an account's rows the pseudonym, without what was kept of its results and errors; one that did not succeed gets a class
-- that no re-run takes. One that is open by now is left alone: it has to run once, as itself.
-- $1 account, $2 pseudonym, $3 occurrence ids, $4 their scheduled_at.
with forgotten as (
    update matins.ledger l
       set account = $2, result = null, error = null,
           error_class = case when l.state <> 'succeeded' then 'forgotten_account' end
      from unnest($3::bigint[], $4::timestamptz[]) as given (id, scheduled_at)
     where l.occurrence_id = given.id and l.scheduled_at = given.scheduled_at and l.account = $1
       and l.finished_at is not null
    returning 1)
select count(*) from forgotten;
