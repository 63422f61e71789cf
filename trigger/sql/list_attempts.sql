-- Lists who attempted an instant, the winner first. $1 job, $2 scheduled_at, $3 variant.
select a.instance, a.region, a.attempted_at, a.won, coalesce(i.host, a.host) as host, i.version
  from matins.attempt a
  left join matins.instance i on i.id = a.instance
 where a.job = $1 and a.scheduled_at = $2 and a.variant = $3
 order by a.won desc, a.attempted_at;
