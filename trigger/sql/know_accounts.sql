-- Writes the locks of a page's accounts, in the page's transaction, so that whoever starts them only has to lock what is
-- there. In one order, since two fan-outs of a job may write the same ones. $1 job, $2 accounts.
insert into matins.account_lock (job, account)
select $1, given.account
  from unnest($2::text[]) as given (account)
 order by given.account collate "C"
on conflict do nothing;
