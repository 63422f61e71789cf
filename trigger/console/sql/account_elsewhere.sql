-- Reads what became of an account in the occurrences of its job around one, the latest first: each is one row that is sought
-- by its key. $1 job, $2 scheduled_at, $3 variant, $4 account, $5 how many occurrences before it, and behind it.
with around as (
    (select o.id, o.scheduled_at, o.variant
       from matins.occurrence o
      where o.job = $1 and (o.scheduled_at, o.variant) < ($2::timestamptz, $3::text)
      order by o.scheduled_at desc, o.variant desc
      limit $5)
    union all
    (select o.id, o.scheduled_at, o.variant
       from matins.occurrence o
      where o.job = $1 and (o.scheduled_at, o.variant) > ($2::timestamptz, $3::text)
      order by o.scheduled_at, o.variant
      limit $5))
select around.scheduled_at, around.variant, l.state, l.attempts, l.error_class, l.finished_at
  from around
 cross join lateral (
       select one.state, one.attempts, one.error_class, one.finished_at
         from matins.ledger one
        where one.occurrence_id = around.id and one.scheduled_at = around.scheduled_at and one.account = $4::text
        limit 1) l
 order by around.scheduled_at desc, around.variant desc;
