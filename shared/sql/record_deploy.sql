-- Marks that a service runs another version than the last that was marked of it: of many that start at once, one marks.
-- $1 system, $2 version, $3 instance.
with latest as (
    select id, version from matins.deploy where system = $1 and follows is not null order by follows desc limit 1)
insert into matins.deploy (system, version, instance, follows)
select $1, $2, $3, coalesce((select id from latest), 0)
 where $2 is distinct from (select version from latest)
on conflict (system, follows) do nothing;
