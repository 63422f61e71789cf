-- Reads the open alerts of due instants that had no row.
select a.kind, a.subject, a.job, a.told, a.detail
  from matins.alert a
 where a.closed_at is null and a.occurrence_id is null and a.kind in ('not_claimed', 'missed');
