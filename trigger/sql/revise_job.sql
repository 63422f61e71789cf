-- Gives a job its next definition; under the job row's lock. What was planned further ahead under the former one says
-- nothing of the new one, so the plan may reach less far than before.
-- $1 name, $2 revision, $3 definition, $4 fingerprint, $5 planned through.
update matins.job
   set revision = $2, definition = $3, fingerprint = $4, planned_through = $5
 where name = $1;
