-- Has lost messages published again. In key order and without waiting: a row that is executed has its message. Gives how
-- many were lost of the rows that it looked at, how many those are, and the last of them, behind which the next page begins.
-- $1 occurrence id, $2 its scheduled_at, $3 at most, $4 through position, $5 lost before, $6 behind this account.
with first_published as (
    select max(through_position) as through
      from matins.publication
     where occurrence_id = $1 and published_at < $5)
, silent as materialized (
    select account
      from matins.ledger
     where occurrence_id = $1 and scheduled_at = $2 and state = 'pending' and finished_at is null
       and position <= $4 and account > $6
       and ((epoch = 0 and position <= (select through from first_published))
            or (published_at is not null and greatest(published_at, not_before) < $5))
     order by account
     limit $3)
, lost as (
    select l.account
      from matins.ledger l
     where l.occurrence_id = $1 and l.scheduled_at = $2 and l.account = any (array(select account from silent))
       and l.state = 'pending'
       and ((l.epoch = 0 and l.position <= (select through from first_published))
            or (l.published_at is not null and greatest(l.published_at, l.not_before) < $5))
     order by l.account
       for update of l skip locked)
, swept as (
    update matins.ledger l
       set published_at = null, epoch = l.epoch + 1
     where l.occurrence_id = $1 and l.scheduled_at = $2 and l.account = any (array(select account from lost))
    returning l.account)
select (select count(*) from swept) as lost, count(*) as looked_at, max(account) as last
  from silent;
