-- Gives a job's switch its pings: one for the beginning and one for the end of each run of the schedule, which nobody who
-- claims or closes has to write. It looks an hour behind what was done before, and at what it has begun to tell of; a new
-- channel tells of what runs, and of what comes. Of all who do it at once, the unique key lets one.
-- $1 channel, $2 job, $3 now.
with clock as (select coalesce($3::timestamptz, clock_timestamp()) as now)
, former as (
    select coalesce((select spread_through from matins.channel where name = $1) - interval '1 hour', clock.now) as since
      from clock)
, known as (
    -- So much ahead that nothing before now is told of later either.
    insert into matins.channel as c (name, spread_through) select $1, clock.now + interval '1 hour' from clock
    on conflict (name) do update set spread_through = excluded.spread_through - interval '1 hour'
     where c.spread_through < excluded.spread_through - interval '61 minutes')
, run as (
    select o.id, o.generation, o.state, o.opened_at, o.closed_at
      from matins.occurrence o
     where o.job = $2 and o.variant = '' and o.origin = 'schedule' and o.state in ('claimed', 'running')
    union
    select o.id, o.generation, o.state, o.opened_at, o.closed_at
      from former, matins.occurrence o
     where o.job = $2 and o.variant = '' and o.origin = 'schedule'
       and o.scheduled_at > former.since - interval '2 days' and o.closed_at > former.since
    union
    select o.id, o.generation, o.state, o.opened_at, o.closed_at
      from clock, matins.delivery begun
      join matins.occurrence o on o.id = begun.occurrence_id and o.generation = begun.generation
     where begun.channel = $1 and begun.event = 'start' and begun.created_at > clock.now - interval '8 days'
       and o.closed_at is not null
       -- Asked one by one, by the unique key.
       and (select count(*) from matins.delivery ended
             where ended.channel = $1 and ended.occurrence_id = begun.occurrence_id
               and ended.generation = begun.generation) = 1)
insert into matins.delivery (channel, thread, place, occurrence_id, generation, event, created_at, not_before)
select $1, 'run ' || run.id || ' ' || run.generation, told.place, run.id, run.generation, told.event, told.at, told.at
  from run
 cross join lateral (
    values (1, 'start', run.opened_at),
           (2, case run.state when 'succeeded' then 'success' else 'fail' end, run.closed_at)) as told (place, event, at)
 where told.at is not null
   and not exists (select from matins.delivery d
                    where d.channel = $1 and d.occurrence_id = run.id and d.generation = run.generation
                      and d.event = told.event)
 order by run.id, told.place
on conflict (channel, occurrence_id, generation, event) do nothing;
