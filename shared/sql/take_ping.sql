-- Decides who says outside that the watch looks: once somebody has looked since it was said last, all of it committed, and
-- that is long enough ago, the first who asks. What looked while everything was held has judged nothing, and doesn't count.
-- Gives when it was looked. $1 channel, $2 how often, $3 now.
with clock as (select coalesce($3::timestamptz, clock_timestamp()) as now)
, look as (
    select w.looked_at, clock.now
      from matins.watch w, clock
     where w.looked_at > coalesce(w.held_at, '-infinity') and w.looked_at > clock.now - interval '1 hour')
insert into matins.channel as c (name, spread_through, turn_at)
select $1, look.now, look.now from look
on conflict (name) do update
   set turn_at = excluded.turn_at, spread_through = excluded.spread_through
 where c.turn_at is null or c.turn_at > excluded.turn_at + interval '1 minute'
    or (c.turn_at + $2::interval <= excluded.turn_at and c.turn_at < (select looked_at from look))
returning (select looked_at from look) as looked_at, c.turn_at as now;
