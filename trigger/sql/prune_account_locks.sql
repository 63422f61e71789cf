-- Deletes the locks of accounts that no retained ledger row names, of jobs whose accounts wait for the occurrences before.
-- One that somebody holds stays. Whoever starts an account whose lock is gone by then makes it anew, or finds it gone in
-- between, and comes again; a page that is being written needs none.
delete from matins.account_lock
 where ctid = any (array(
       select k.ctid
         from matins.account_lock k
        where not exists (
              select from matins.ledger l join matins.occurrence o on o.id = l.occurrence_id
               where o.job = k.job and l.account = k.account)
          for update of k skip locked));
