-- Of the open alerts of one kind and job the latest is told again for all.
create index alert_of_job on matins.alert (kind, job, id) where closed_at is null;

-- Where nobody has watched yet, what had ended badly before the last day is known to whoever wanted to know it: the first look
-- would tell a month of it at once. It counts as acknowledged; run again, it is told if it ends so again.
insert into matins.alert (kind, subject, job, occurrence_id, told, detail, opened_at, opened_by, notices, acknowledged_at,
                          acknowledged_by, acknowledge_reason, closed_at, close_reason)
select o.state, named.subject, o.job, o.id, named.subject || ' had ended so before anybody watched',
       jsonb_build_object('generation', o.generation), clock.now, 'migrate', 0, clock.now,
       'migrate', 'it had ended so before anybody watched', clock.now, 'it had ended so before anybody watched'
  from (select clock_timestamp() as now) clock
  join matins.watch w on w.looked_at is null
  join matins.occurrence o
    on o.state in ('partial', 'failed', 'missed')
   and coalesce(o.closed_at, o.scheduled_at) between clock.now - interval '31 days' and clock.now - interval '1 day'
 cross join lateral (
       select o.job || o.variant || ':' || to_char(
                  o.scheduled_at at time zone 'UTC',
                  case when extract(second from o.scheduled_at) = 0 then 'YYYY-MM-DD"T"HH24:MI"Z"'
                       else 'YYYY-MM-DD"T"HH24:MI:SS"Z"' end) as subject) named
 order by o.id;
