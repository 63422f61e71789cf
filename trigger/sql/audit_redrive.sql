-- Says who published a parked message again, and why. $1 job, $2 occurrence id, $3 instance, $4 actor, $5 reason, $6 detail.
insert into matins.audit (kind, job, occurrence_id, instance, actor, actor_kind, reason, detail)
values ('redrive', $1, $2, $3, $4, 'operator', $5, $6);
