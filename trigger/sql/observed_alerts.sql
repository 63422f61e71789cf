-- Counts the open alerts by kind.
select a.kind, count(*) as alerts from matins.alert a where a.closed_at is null group by a.kind;
