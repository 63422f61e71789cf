-- Gives a right back before its time, so that another process may try; nothing for a right that is another's.
-- $1 name, $2 holder, $3 now.
update matins.lease
   set until = coalesce($3::timestamptz, clock_timestamp()) - interval '1 microsecond'
 where name = $1 and holder = $2;
