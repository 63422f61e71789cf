-- The accounts of which a billing period closed in the window, each by the calendar of its own zone.
-- Named parameters: since, until (timestamptz). No race: what closed in a past window never changes; an account that
-- is added behind the cursor was created after its last closing, and is not due.
select account.id as account, account.number as cursor
  from billing.account
 where account.anchor_day = any (billing.anchors_near(:since, :until))
   and exists (select
                 from billing.closings(account.anchor_day, account.zone, :since, :until) as closing
                where closing.ends_at > account.created_at)
