-- Gives a job its next definition; under the job row's lock. $1 name, $2 revision, $3 definition, $4 fingerprint.
update matins.job
   set revision = $2, definition = $3, fingerprint = $4
 where name = $1;
