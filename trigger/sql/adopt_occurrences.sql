-- Moves what stays expected to the new revision, so that it can be claimed; under the job row's lock. $1 job, $2 revision.
update matins.occurrence set revision = $2 where job = $1 and state = 'expected';
