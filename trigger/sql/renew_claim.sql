-- Says that a fan-out lives, while it reads a slow page; nothing for one that was taken over or whose dispatch has ended.
-- $1 id, $2 epoch, $3 lease, $4 now.
update matins.occurrence
   set lease_until = coalesce($4::timestamptz, clock_timestamp()) + $3::interval
 where id = $1 and epoch = $2 and state = 'claimed' and ending is null
returning lease_until;
