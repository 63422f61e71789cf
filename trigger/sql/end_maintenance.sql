-- Ends a planned maintenance: one in force is over from now on, one that is to come is withdrawn, one that is over stays.
-- Says so in the audit trail; of two who do it at once, the row's lock lets one.
-- $1 id, $2 actor, $3 reason, $4 instance, $5 now.
with before as (
    select id, job, since, until, coalesce($5::timestamptz, clock_timestamp()) as present
      from matins.maintenance where id = $1 for update)
, ended as (
    update matins.maintenance m set until = before.present
      from before where m.id = before.id and before.since < before.present and before.present < before.until
    returning m.id, m.until)
, withdrawn as (
    delete from matins.maintenance m using before where m.id = before.id and before.since >= before.present
    returning m.id)
, audited as (
    insert into matins.audit (kind, job, instance, actor, actor_kind, reason, detail)
    select 'maintenance_end', before.job, $4, $2, 'operator', $3,
           jsonb_build_object('maintenance', before.id,
                              'before', jsonb_build_object('since', before.since, 'until', before.until),
                              'after', (select jsonb_build_object('since', before.since, 'until', ended.until) from ended))
      from before
     where before.present < before.until)
select before.job, before.until,
       case when exists (select from ended) then 'ended' when exists (select from withdrawn) then 'withdrawn' else 'over' end as became
  from before;
