-- Keeps a definition for good; under the job row's lock.
-- $1 job, $2 revision, $3 definition, $4 fingerprint, $5 instance, $6 now.
with recorded as (
    insert into matins.job_revision (job, revision, definition, fingerprint, effective_from, recorded_by)
    values ($1, $2, $3, $4, coalesce($6::timestamptz, clock_timestamp()), $5)
    returning job, revision, fingerprint)
insert into matins.audit (kind, job, instance, detail)
select 'definition', job, $5, jsonb_build_object('revision', revision, 'fingerprint', fingerprint)
  from recorded;
