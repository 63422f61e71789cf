-- Signs somebody out on every process at once, and says so in the audit trail. $1 digest of the token, $2 instance.
with ended as (
    delete from matins.console_session where token_digest = $1
    returning name, means)
insert into matins.audit (kind, instance, actor, actor_kind, detail)
select 'signed_out', $2::text, name, 'operator', jsonb_build_object('means', means)
  from ended;
