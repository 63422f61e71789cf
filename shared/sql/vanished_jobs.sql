-- Finds the jobs that are known, neither retired nor paused, and declared by no live process of a kind that should: triggers,
-- or workers for what each runs for itself. Where no process of the kind lives, or one that doesn't say what it declares,
-- nobody can tell, and nothing is found anew; what was found before stands until one declares it.
-- That a process which came later than the last that declared a job does not, and has other jobs of its, is why at once; that
-- the last is gone and others have lived on without it, after a minute: a fleet that starts or restarts is not complete.
-- All that live are asked, and of those that are gone the latest of each kind. $1 now.
with clock as (select coalesce($1::timestamptz, clock_timestamp()) as now)
, recent as materialized (
    select placed.*
      from (select i.id, i.kind, i.version, i.started_at, i.seen_at, i.definitions, life.alive,
                   row_number() over (partition by i.kind, life.alive order by i.seen_at desc) as place
              from clock
             cross join matins.instance i
             cross join lateral (
                   select i.stopped_at is null and i.seen_at > clock.now - interval '1 minute' as alive) life) placed
     where placed.alive or placed.place <= 50)
, asked as materialized (
    select r.kind, count(*) as live, bool_and(r.definitions is not null) as told,
           bool_or(r.started_at < clock.now - interval '1 minute') as settled
      from clock, recent r
     where r.alive
     group by r.kind)
, declared as materialized (
    select distinct r.kind, said.job
      from recent r
     cross join lateral jsonb_object_keys(r.definitions) as said (job)
     where r.alive)
, missing as materialized (
    select j.name as job, should.kind, coalesce(asked.live, 0) as live, coalesce(asked.settled, false) as settled,
           standing.subject is not null as stands
      from matins.job j
     cross join lateral (
           select case when j.definition ->> 'coordination' = 'every' then 'worker' else 'trigger' end as kind) should
      left join asked on asked.kind = should.kind
      left join matins.alert standing
        on standing.kind = 'job_vanished' and standing.subject = j.name and standing.closed_at is null
     where j.retired_at is null and j.paused_at is null
       and (asked.told or standing.subject is not null)
       and not exists (select from declared d where d.kind = should.kind and d.job = j.name))
-- Read once, whatever the number of jobs that are missing: what a process declares may be long.
, former as materialized (
    select distinct on (said.job, r.kind) said.job, r.kind, r.id, r.version, r.started_at, r.seen_at
      from recent r
     cross join lateral jsonb_object_keys(r.definitions) as said (job)
      join missing m on m.job = said.job and m.kind = r.kind
     order by said.job, r.kind, r.seen_at desc)
, succeeded as materialized (
    select last.id
      from (select distinct f.id from former f) one
      join recent last on last.id = one.id
     where exists (
           select from recent r
            where r.alive and r.kind = last.kind and r.started_at > last.started_at
              and exists (select from jsonb_object_keys(last.definitions) as shared (job) where r.definitions ? shared.job)))
select m.job, m.kind, f.id as last_id, f.version as last_version, f.seen_at as last_seen_at, m.live
  from clock
 cross join missing m
  left join former f on f.job = m.job and f.kind = m.kind
 where m.stands
    or f.id in (select s.id from succeeded s)
    or ((f.id is null or f.seen_at < clock.now - interval '1 minute') and m.settled)
 order by m.job;
