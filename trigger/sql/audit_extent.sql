-- Reads how far the ids of the audit trail reach.
select coalesce(min(id), 1) as first, coalesce(max(id), 0) as last from matins.audit;
