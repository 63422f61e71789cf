-- Reads how many of each job's last runs there are, and how long the longest of them took. $1 jobs, $2 runs at most.
select job.name as job, count(*) as runs, max(last.closed_at - last.opened_at) as longest
  from unnest($1::text[]) as job (name)
 cross join lateral (
       select o.closed_at, o.opened_at
         from matins.occurrence o
        where o.job = job.name and o.state in ('succeeded', 'partial', 'failed')
        order by o.scheduled_at desc
        limit $2) last
 group by job.name;
