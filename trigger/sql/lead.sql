-- Takes or renews the right to lead jobs: of all triggers that ask, one holds it for each job until its time is over.
-- Those of the unproven jobs, which this trigger led when its last pass did not end well, are told and not renewed.
-- A right that another holds is not written to. $1 jobs, $2 unproven jobs, $3 holder, $4 duration, $5 now.
with clock as (select coalesce($5::timestamptz, clock_timestamp()) as now)
, taken as (
    insert into matins.lease as held (name, holder, until)
    select 'leader:' || asked.job, $3, clock.now + $4::interval
      from clock, unnest($1::text[]) as asked (job)
     where not exists (
           select from matins.lease l
            where l.name = 'leader:' || asked.job and l.holder <> $3 and l.until >= clock.now)
     order by 1
    on conflict (name) do update
       set holder = excluded.holder, until = excluded.until,
           epoch = held.epoch + case when held.holder = excluded.holder then 0 else 1 end
     where held.holder = excluded.holder or held.until < coalesce($5::timestamptz, clock_timestamp())
    returning name, epoch)
select substr(name, 8) as job, epoch from taken
union all
select substr(l.name, 8), l.epoch
  from clock, unnest($2::text[]) as asked (job)
  join matins.lease l on l.name = 'leader:' || asked.job
 where l.holder = $3 and l.until >= clock.now;
