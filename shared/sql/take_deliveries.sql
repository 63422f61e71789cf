-- Takes messages of a channel that are due, for a time: of several deliverers each is one's, and one that has died leaves
-- it to the next. What stands behind another of its thread that is still waiting is not taken.
-- $1 channel, $2 deliverer, $3 for how long, $4 at most, $5 now.
with clock as (select coalesce($5::timestamptz, clock_timestamp()) as now)
, due as (
    select d.id
      from matins.delivery d, clock
     where d.channel = $1 and d.state = 'waiting' and d.not_before <= clock.now
       and (d.leased_until is null or d.leased_until <= clock.now)
       and not exists (select from matins.delivery before
                        where before.channel = d.channel and before.thread = d.thread and before.place < d.place
                          and before.state = 'waiting')
     order by d.not_before, d.id
     limit $4
       for update of d skip locked)
, taken as (
    update matins.delivery d
       set attempts = d.attempts + 1, deliverer = $2, leased_until = clock.now + $3::interval
      from due, clock
     where d.id = due.id
    returning d.id, d.thread, d.place, d.attempts, d.event, d.notification_id, d.occurrence_id, d.generation,
              d.created_at as waiting_since, d.error, clock.now)
select taken.id, taken.attempts, taken.event, taken.notification_id, taken.now, n.body, n.created_at,
       o.job, o.scheduled_at, o.variant, o.state, taken.generation, taken.waiting_since,
       taken.error,
       exists (select from matins.delivery later
                where later.channel = $1 and later.thread = taken.thread and later.place > taken.place
                  and later.state = 'waiting') as overtaken
  from taken
  left join matins.notification n on n.id = taken.notification_id
  left join matins.occurrence o on o.id = taken.occurrence_id
 order by taken.id;
