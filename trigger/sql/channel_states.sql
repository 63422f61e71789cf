-- Reads how each channel fares: what waits, since when, and what was given up. What waits for longer than a week belongs to
-- a channel that no process declares any more. $1 days to look back for what was given up, $2 now.
with clock as (select coalesce($2::timestamptz, clock_timestamp()) as now)
select c.name, coalesce(waiting.count, 0) as waiting, waiting.since, waiting.attempts, waiting.error,
       coalesce(lost.count, 0) as given_up, lost.at as given_up_at, lost.error as given_up_error,
       (select d.ended_at from matins.delivery d
         where d.channel = c.name and d.state = 'delivered' order by d.ended_at desc limit 1) as delivered_at,
       clock.now
  from clock, matins.channel c
  left join lateral (
    select count(*) as count, min(d.created_at) as since, max(d.attempts) as attempts,
           (array_agg(d.error order by d.attempts desc, d.id desc))[1] as error
      from matins.delivery d, clock
     where d.channel = c.name and d.state = 'waiting' and d.created_at > clock.now - interval '7 days') as waiting on true
  left join lateral (
    select count(*) as count, max(d.ended_at) as at, (array_agg(d.error order by d.ended_at desc))[1] as error
      from matins.delivery d, clock
     where d.channel = c.name and d.state = 'given_up'
       and d.ended_at > clock.now - make_interval(days => $1)) as lost on true
 order by c.name;
