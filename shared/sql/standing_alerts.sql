-- Reads the open alerts of some kinds, and whether the rhythm has each told now. $1 kinds, $2 now.
select id, kind, subject, told, acknowledged_at, acknowledged_by, acknowledge_reason, detail -> 'generation' as generation,
       next_notice_at <= coalesce($2::timestamptz, clock_timestamp()) as due
  from matins.alert
 where closed_at is null and kind = any ($1::text[])
 order by id;
