-- Writes an ad-hoc occurrence: an identity of its own beside the schedule's, by its variant; it is claimed in the same
-- transaction. $1 job, $2 scheduled_at, $3 variant, $4 revision, $5 window since, $6 window until, $7 tzdata version.
insert into matins.occurrence (job, scheduled_at, variant, origin, revision, window_since, window_until, tzdata_version)
values ($1, $2, $3, 'ad_hoc', $4, $5, $6, $7);
