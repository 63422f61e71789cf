-- Records that a queue was retired. $1 instance, $2 actor, $3 reason, $4 detail.
insert into matins.audit (kind, instance, actor, actor_kind, reason, detail)
values ('queue_retired', $1, $2, 'operator', $3, $4);
