-- Reads the occurrences of a job that a table shows: the last ones that are due, or the last before an instant, whatever
-- they come from, and of each instant all of them. Each says whether there are earlier ones.
-- $1 job, $2 before (null: from now), $3 how many.
with page as materialized (
    select o.*
      from matins.occurrence o
     where o.job = $1 and o.scheduled_at < coalesce($2::timestamptz, now()) and o.due_at <= clock_timestamp()
     order by o.scheduled_at desc
     fetch first ($3::integer) rows with ties)
select page.job, page.scheduled_at, page.variant, page.origin, page.state, page.reason, page.ending, page.generation,
       page.opened_at, page.closed_at, page.accounts_read, page.total, page.succeeded, page.claimed_by, page.fired_by,
       case when page.claimed_at is not null then
            greatest(extract(epoch from page.claimed_at - page.due_at), 0)::double precision end as lag_seconds,
       coalesce(i.host, (select a.host from matins.attempt a
                          where a.job = page.job and a.scheduled_at = page.scheduled_at and a.variant = page.variant
                            and a.instance = page.claimed_by)) as claimed_on,
       earlier.scheduled_at is not null as more
  from page
  left join matins.instance i on i.id = page.claimed_by
  left join lateral (
       select o.scheduled_at
         from matins.occurrence o
        where o.job = $1 and o.scheduled_at < (select min(scheduled_at) from page)
        order by o.scheduled_at desc
        limit 1) earlier on true
 order by page.scheduled_at desc, page.variant desc;
