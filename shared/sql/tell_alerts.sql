-- Counts a notice of each open alert that is to be told now, once whoever comes first: a new one, and one whose time has come
-- again or whose silence is over; none that is acknowledged, silenced, or of planned work. Of several of one kind and job that
-- were told before, the latest is told again for all. One of a kind that only another release knows is left to that.
-- $1 rhythm, $2 kinds that are known, $3 now.
with clock as (select coalesce($3::timestamptz, clock_timestamp()) as now)
, due as materialized (
    select a.id,
           a.notices = 0 or not exists (
               select from matins.alert later
                where later.kind = a.kind and later.job = a.job and later.id > a.id and later.closed_at is null
                  and later.notices > 0 and later.acknowledged_at is null
                  and (later.silenced_until is null or later.silenced_until <= clock.now)) as is_told
      from clock, matins.alert a
     where a.closed_at is null and a.acknowledged_at is null and a.kind = any ($2::text[])
       and (a.silenced_until is null or a.silenced_until <= clock.now)
       and least(a.next_notice_at,
                 case when a.silenced_until > a.next_notice_at - $1::interval then a.silenced_until end) <= clock.now
       and not exists (
           select from matins.maintenance m
            where m.until > clock.now and m.since <= clock.now and (m.job is null or m.job = a.job))
       for no key update of a)
, told as (
    update matins.alert a
       set notices = a.notices + due.is_told::integer, next_notice_at = clock.now + $1::interval
      from clock, due
     where a.id = due.id
    returning a.*, due.is_told, clock.now as at)
select id, kind, subject, job, told, detail, opened_at, notices, closed_at, close_reason, at
  from told
 where is_told;
