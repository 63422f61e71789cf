-- Signs somebody in, and says so in the audit trail. $1 digest of the token, $2 name, $3 means, $4 issuer, $5 subject,
-- $6 claims, $7 instance, $8 detail of the entry.
with signed_in as (
    insert into matins.console_session (token_digest, name, means, issuer, subject, claims)
    values ($1, $2, $3, $4, $5, $6)
    returning name)
insert into matins.audit (kind, instance, actor, actor_kind, detail)
select 'signed_in', $7::text, name, 'operator', $8::jsonb
  from signed_in;
