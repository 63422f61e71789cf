-- Keeps a definition for good, and says in the audit trail what it was before and is now; under the job row's lock.
-- $1 job, $2 revision, $3 definition, $4 fingerprint, $5 instance, $6 now.
with recorded as (
    insert into matins.job_revision (job, revision, definition, fingerprint, effective_from, recorded_by)
    values ($1, $2, $3, $4, coalesce($6::timestamptz, clock_timestamp()), $5)
    returning job, revision, fingerprint, definition)
insert into matins.audit (kind, job, instance, detail)
select 'definition', recorded.job, $5,
       jsonb_build_object('revision', recorded.revision, 'fingerprint', recorded.fingerprint, 'before', former.definition,
                          'after', recorded.definition)
  from recorded
  left join matins.job_revision former on former.job = recorded.job and former.revision = recorded.revision - 1;
