-- Lists the ledger's monthly tables that end at an instant or before, also those that an earlier prune has only half taken
-- away, each with the accounts of its occurrences, how many of these may no longer be run again, and its size. $1 before.
with monthly as (
    select c.oid, c.relname,
           make_timestamptz(substr(c.relname, 8, 4)::integer, substr(c.relname, 13, 2)::integer, 1, 0, 0, 0, 'UTC') as begins
      from pg_class c
     where c.relnamespace = 'matins'::regnamespace and c.relkind = 'r' and c.relname ~ '^ledger_[0-9]{4}_(0[1-9]|1[0-2])$')
, bounded as (
    select monthly.*, ((begins at time zone 'UTC') + interval '1 month') at time zone 'UTC' as ends
      from monthly)
select bounded.relname as name, bounded.begins, bounded.ends, pg_total_relation_size(bounded.oid) as bytes,
       i.inhrelid is not null as attached, coalesce(i.inhdetachpending, false) as detaching,
       coalesce(sum(o.total), 0)::bigint as accounts,
       count(o.id) as occurrences,
       count(o.id) filter (where o.state in ('partial', 'failed', 'cancelled')) as unsuccessful
  from bounded
  left join pg_inherits i on i.inhrelid = bounded.oid and i.inhparent = 'matins.ledger'::regclass
  left join matins.occurrence o
    on o.scheduled_at >= bounded.begins and o.scheduled_at < bounded.ends and o.closed_at is not null
 where bounded.ends <= $1
 group by bounded.relname, bounded.begins, bounded.ends, bounded.oid, i.inhrelid, i.inhdetachpending
 order by bounded.begins;
