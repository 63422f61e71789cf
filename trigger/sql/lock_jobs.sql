-- Takes every job's lock, so that nothing is claimed or run again meanwhile; in one order, and as a transaction's first
-- statement.
select name
  from matins.job
 order by name
   for no key update;
