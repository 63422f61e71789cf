-- Counts, by scheduled instant of a job, who attempted it and who won it. $1 job, $2 since.
select a.scheduled_at, count(*) as attempts, count(*) filter (where a.won) as wins
  from matins.attempt a
 where a.job = $1 and a.scheduled_at >= $2 and (a.variant = '' or a.variant like '@%')
 group by a.scheduled_at;
