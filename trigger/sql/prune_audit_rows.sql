-- Deletes some of the links of the chain's pruned beginning, each with its row. $1 through this position, $2 at most.
with gone as (
    delete from matins.audit_chain
     where position in (select c.position from matins.audit_chain c where c.position <= $1 order by c.position limit $2)
    returning audit_id)
, rows as (
    delete from matins.audit a using gone where a.id = gone.audit_id)
select count(*) from gone;
