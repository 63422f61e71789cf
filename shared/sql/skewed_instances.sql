-- Finds the live processes whose clock was far from the database's at their last sign of life. $1 seconds, $2 now.
select i.id, i.kind, i.host, i.skew
  from matins.instance i
 where i.stopped_at is null and i.seen_at > coalesce($2::timestamptz, clock_timestamp()) - interval '1 minute'
   and abs(i.skew) > $1::double precision
 order by i.id;
