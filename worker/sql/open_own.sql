-- Begins a worker's own occurrence, or records why it does not run; the function decides that it is written once.
-- $1 job, $2 scheduled_at, $3 instance, $4 region, $5 revision, $6 state: running, skipped or missed, $7 reason of the last
-- two, $8 window since, $9 finish within, $10 tzdata version, $11 trace context, $12 now.
select id, claimed_at from matins.open_own($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12);
