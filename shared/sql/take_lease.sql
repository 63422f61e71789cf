-- Takes or renews a right: of all who ask, one holds it until its time is over. $1 name, $2 holder, $3 duration, $4 now.
insert into matins.lease as held (name, holder, until)
values ($1, $2, coalesce($4::timestamptz, clock_timestamp()) + $3::interval)
on conflict (name) do update
   set holder = excluded.holder, until = excluded.until,
       epoch = held.epoch + case when held.holder = excluded.holder then 0 else 1 end
 where held.holder = excluded.holder or held.until < coalesce($4::timestamptz, clock_timestamp())
returning epoch;
