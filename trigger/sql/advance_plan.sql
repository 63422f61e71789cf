-- Says how far a job is planned: every due instant up to there has its row. Under the job row's lock. $1 job, $2 through.
update matins.job set planned_through = greatest(planned_through, $2::timestamptz) where name = $1;
