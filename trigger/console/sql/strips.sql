-- Reads the last occurrences of each of some jobs, the latest first: for the strips of the first page. Ad-hoc ones stand
-- beside the schedule, and are left out. $1 jobs, $2 how many of each.
select latest.*
  from unnest($1::text[]) as asked (job)
 cross join lateral (
       select o.job, o.scheduled_at, o.variant, o.state, o.reason, o.accounts_read, o.total, o.succeeded
         from matins.occurrence o
        where o.job = asked.job and o.origin <> 'ad_hoc' and o.due_at <= clock_timestamp()
        order by o.scheduled_at desc, o.variant desc
        limit $2) latest;
