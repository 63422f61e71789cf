-- Lets another trigger go on at once. $1 id, $2 epoch, $3 now.
update matins.occurrence
   set lease_until = coalesce($3::timestamptz, clock_timestamp())
 where id = $1 and epoch = $2 and state = 'claimed' and ending is null
returning id;
