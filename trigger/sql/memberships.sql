-- Reads of which roles some roles are members, and how: whether they may take it, whether its rights are theirs anyway,
-- and whether they may make others members. Before PostgreSQL 16 the grant itself doesn't say either. $1 members.
select granted.rolname::text as role, member.rolname::text as member,
       bool_or(coalesce((to_jsonb(m) ->> 'set_option')::boolean, true)) as may_set,
       bool_or(m.admin_option) as hands_on,
       bool_or(coalesce((to_jsonb(m) ->> 'inherit_option')::boolean, member.rolinherit)) as inherits
  from pg_auth_members m
  join pg_roles granted on granted.oid = m.roleid
  join pg_roles member on member.oid = m.member
 where member.rolname = any ($1::text[])
 group by 1, 2;
