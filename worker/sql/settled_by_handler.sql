-- Tells whether an outside call has settled its account itself: its row succeeded at the very next epoch of the start.
-- $1 occurrence id, $2 its scheduled_at, $3 account, $4 epoch of the start.
select exists (
       select from matins.ledger
        where occurrence_id = $1 and scheduled_at = $2 and account = $3 and epoch = $4 + 1 and state = 'succeeded');
