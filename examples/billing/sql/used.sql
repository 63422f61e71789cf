-- The accounts that used anything in the window.
-- Named parameters: since, until (timestamptz). No race is decided here.
select account.id as account, account.number as cursor
  from billing.account
 where exists (select
                 from billing.usage_event
                where usage_event.account = account.id and usage_event.at > :since and usage_event.at <= :until)
