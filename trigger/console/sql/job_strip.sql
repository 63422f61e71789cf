-- Reads the occurrences of a job that a strip shows: the last ones that are due, or the last before an instant, and of each
-- instant all of them. Ad-hoc ones stand beside the schedule, and are left out. Each says whether there are earlier ones.
-- $1 job, $2 before (null: from now), $3 how many.
with page as materialized (
    select o.job, o.scheduled_at, o.variant, o.state, o.reason, o.accounts_read, o.total, o.succeeded
      from matins.occurrence o
     where o.job = $1 and o.scheduled_at < coalesce($2::timestamptz, now()) and o.origin <> 'ad_hoc'
       and o.due_at <= clock_timestamp()
     order by o.scheduled_at desc
     fetch first ($3::integer) rows with ties)
select page.*, earlier.scheduled_at is not null as more
  from page
  left join lateral (
       select o.scheduled_at
         from matins.occurrence o
        where o.job = $1 and o.origin <> 'ad_hoc' and o.scheduled_at < (select min(scheduled_at) from page)
        order by o.scheduled_at desc
        limit 1) earlier on true
 order by page.scheduled_at, page.variant;
