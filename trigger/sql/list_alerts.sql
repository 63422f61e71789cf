-- Lists alerts: the open ones first, of those the worst and then the oldest on top; what is over follows, the latest first.
-- Each with the end of the planned maintenance that it falls into now, and how many there are in all.
-- $1 also what is over, $2 job (null: all), $3 kinds (null: all), $4 opened since (null: any), $5 the critical kinds,
-- $6 occurrence id (null: any), $7 at most, $8 behind so many.
with chosen as not materialized (
    select a.*
      from matins.alert a
     where ($1::boolean or a.closed_at is null)
       and ($2::text is null or a.job = $2)
       and ($3::text[] is null or a.kind = any ($3))
       and ($4::timestamptz is null or a.opened_at >= $4)
       and ($6::bigint is null or a.occurrence_id = $6))
, page as (
    select chosen.* from chosen
     order by chosen.closed_at desc nulls first, chosen.kind <> all ($5::text[]), chosen.opened_at, chosen.id
     limit $7 offset $8)
select a.*, clock_timestamp() as now, planned.until as maintained_until, (select count(*) from chosen) as found
  from page a
  left join lateral (
       select max(m.until) as until from matins.maintenance m
        where (m.job is null or m.job = a.job) and m.since <= clock_timestamp() and m.until > clock_timestamp()) planned on true
 order by a.closed_at desc nulls first, a.kind <> all ($5::text[]), a.opened_at, a.id;
