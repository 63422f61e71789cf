-- Records a check-in: one that has changed something each time, and of those that came too late the first of its kind, so
-- that no caller can fill the trail.
-- $1 job, $2 occurrence id, $3 instance, $4 caller, $5 actor kind, $6 how it is known, $7 detail, $8 whether once.
insert into matins.audit (kind, job, occurrence_id, instance, actor, actor_kind, reason, detail)
select 'check_in', $1, $2, $3, $4, $5, $6, $7
 where not ($8::boolean and exists (
       select from matins.audit a
        where a.occurrence_id = $2 and a.kind = 'check_in' and a.actor = $4
          and a.detail ->> 'event' = $7::jsonb ->> 'event' and a.detail ->> 'refused' is not null));
