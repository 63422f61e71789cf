-- Decides who looks: of all who come, the first for whom the last look is over for long enough; the others don't wait for it.
-- Gives the present, the environment and, while everything is held, that it is. $1 instance, $2 interval, $3 now.
with clock as (select coalesce($3::timestamptz, clock_timestamp()) as now)
, held as (
    select e.name, e.held_since is not null as held from matins.environment e)
, due as (
    select w.singleton
      from matins.watch w, clock
     where w.looked_at is null or w.looked_at <= clock.now - $2::interval
        -- Somebody has set the database's clock back.
        or w.looked_at > clock.now + interval '1 minute'
       for update of w skip locked)
update matins.watch w
   set looked_at = clock.now, looked_by = $1,
       held_at = case when (select held from held) then clock.now else w.held_at end
  from due, clock
 where w.singleton = due.singleton
returning clock.now, coalesce((select name from held), '') as environment, coalesce((select held from held), false) as held;
