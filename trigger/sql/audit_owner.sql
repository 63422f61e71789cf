-- Records what a person has done to the audit trail itself. $1 kind, $2 instance, $3 actor, $4 reason, $5 detail.
insert into matins.audit (kind, instance, actor, actor_kind, reason, detail)
values ($1, $2, $3, 'operator', $4, $5)
returning id;
