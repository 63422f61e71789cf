-- What people read page by page, the latest first. The steps that every occurrence has need no index of their own: the latest
-- of them are among the latest of all.
create index audit_job on matins.audit (job, at) where job is not null;
create index audit_actor on matins.audit (actor, at) where actor is not null;
create index audit_kind on matins.audit (kind, at) where kind not in ('claim', 'sealed', 'closed');
create index alert_closed on matins.alert (closed_at desc);
