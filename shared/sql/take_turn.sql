-- Does for all processes what is done once in a while: of those who ask at once, one finds that it is time. $1 channel,
-- $2 how often, $3 now.
with clock as (select coalesce($3::timestamptz, clock_timestamp()) as now)
update matins.channel c
   set turn_at = clock.now
  from clock
 where c.name = $1
   and (c.turn_at is null or c.turn_at + $2::interval <= clock.now
        -- Somebody has set the database's clock back.
        or c.turn_at > clock.now + interval '1 minute')
returning c.turn_at;
