-- Reads the occurrence before and the one behind another, of those that stand in the same row: the schedule's own, those of
-- one worker, or, beside an ad-hoc one, all. What was taken off the plan is left out. However the others lie, a bounded
-- number of rows is looked at. $1 job, $2 scheduled_at, $3 variant, $4 whether all, $5 look at so many rows at most.
(select 'before' as place, near.scheduled_at, near.variant, near.state
   from (select o.scheduled_at, o.variant, o.state, o.reason
           from matins.occurrence o
          where o.job = $1 and (o.scheduled_at, o.variant) < ($2::timestamptz, $3::text)
          order by o.scheduled_at desc, o.variant desc
          limit $5) near
  where ($4::boolean or near.variant = $3) and near.reason is distinct from 'superseded'
  order by near.scheduled_at desc, near.variant desc
  limit 1)
union all
(select 'behind', near.scheduled_at, near.variant, near.state
   from (select o.scheduled_at, o.variant, o.state, o.reason
           from matins.occurrence o
          where o.job = $1 and (o.scheduled_at, o.variant) > ($2::timestamptz, $3::text)
          order by o.scheduled_at, o.variant
          limit $5) near
  where ($4::boolean or near.variant = $3) and near.reason is distinct from 'superseded'
  order by near.scheduled_at, near.variant
  limit 1);
