-- Opens accounts that did not succeed, in key order; behind the occurrence's re-run in the same transaction. One that
-- killed its workers runs alone. An id that can be no account's stays as it is, and so does a pseudonym.
-- $1 occurrence id, $2 its scheduled_at, $3 new generation, $4 accounts (null: all), $5 new key salt (null: keep the key).
with chosen as (
    select l.account
      from matins.ledger l
     where l.occurrence_id = $1 and l.scheduled_at = $2 and l.state in ('failed', 'dead', 'cancelled')
       and coalesce(l.error_class, '') not in ('invalid_account', 'forgotten_account')
       and ($4::text[] is null or l.account = any ($4::text[]))
     order by l.account
       for update of l)
, reopened as (
    update matins.ledger l
       set state = 'pending', generation = $3, epoch = l.epoch + 1, attempts = 0, starts = 0, isolated = l.state = 'dead',
           not_before = null, published_at = null, started_at = null, finished_at = null, worker = null,
           error_class = null, error = null, result = null, nothing_to_do = false,
           key_salt = coalesce($5::text, l.key_salt)
      from chosen
     where l.occurrence_id = $1 and l.scheduled_at = $2 and l.account = chosen.account
    returning l.account)
select count(*) from reopened;
