-- Puts the pseudonym into the errors of other accounts of the same occurrences, of those that did not succeed.
-- $1 account, $2 pseudonym, $3 occurrence ids, $4 their scheduled_at.
with forgotten as (
    update matins.ledger l
       set error = matins.redact(l.error, $1, $2)
      from unnest($3::bigint[], $4::timestamptz[]) as given (id, scheduled_at)
     where l.occurrence_id = given.id and l.scheduled_at = given.scheduled_at
       and l.state in ('failed', 'dead', 'cancelled') and l.error is distinct from matins.redact(l.error, $1, $2)
    returning 1)
select count(*) from forgotten;
