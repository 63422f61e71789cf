-- Names the roles that this login cannot take, and whether each exists at all. From PostgreSQL 16 on, being a member is not
-- enough. $1 roles.
select given.role, r.oid is not null as exists
  from unnest($1::text[]) as given (role)
  left join pg_roles r on r.rolname = given.role
 where r.oid is null
    or not pg_has_role(session_user, r.oid,
                       case when current_setting('server_version_num')::integer >= 160000 then 'SET' else 'MEMBER' end)
 order by given.role;
