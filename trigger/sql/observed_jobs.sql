-- Reads, for each job that is not retired, when its last success was closed, and when the next is, or was, due: null where
-- it is paused, or none is planned. $1 at most.
select j.name,
       (select o.closed_at
          from matins.occurrence o
         where o.job = j.name and o.state = 'succeeded' and o.origin <> 'ad_hoc'
         order by o.scheduled_at desc
         limit 1) as last_success_at,
       case when j.paused_at is null then (
            select o.due_at
              from matins.occurrence o
             where o.job = j.name and o.state = 'expected' and o.origin = 'schedule'
             order by o.scheduled_at
             limit 1) end as next_due_at
  from matins.job j
 where j.retired_at is null
 order by j.name
 limit $1;
