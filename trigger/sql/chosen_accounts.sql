-- Reads what an operator's chosen accounts are; a null state is an account that the occurrence doesn't have.
-- $1 occurrence id, $2 its scheduled_at, $3 accounts.
select given.account, l.state, l.error_class
  from unnest($3::text[]) as given (account)
  left join matins.ledger l
    on l.occurrence_id = $1 and l.scheduled_at = $2 and l.account = given.account
 order by given.account;
