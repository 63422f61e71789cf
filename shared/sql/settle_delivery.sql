-- Records how an attempt at a message has ended. What was delivered is so, whoever tries by now; a failure is told only by
-- who has the attempt still, and is for good once the time is over that the channel gives.
-- $1 id, $2 attempt, $3 state, $4 wait, $5 error, $6 given up after, $7 now.
with clock as (select coalesce($7::timestamptz, clock_timestamp()) as now)
, judged as (
    select d.id, case when $3 = 'waiting' and d.created_at + $6::interval < clock.now + $4::interval
                      then 'given_up' else $3 end as state
      from matins.delivery d, clock
     where d.id = $1 and d.state = 'waiting' and (d.attempts = $2 or $3 = 'delivered'))
update matins.delivery d
   set state = judged.state, leased_until = null, error = $5,
       ended_at = case when judged.state <> 'waiting' then clock.now end,
       not_before = case when judged.state = 'waiting' then clock.now + $4::interval else d.not_before end
  from judged, clock
 where d.id = judged.id and d.state = 'waiting'
returning d.state;
