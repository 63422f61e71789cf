-- Reads whose a backfill is and whether it goes on. $1 id.
select job, state, ended_at, ended_by from matins.backfill where id = $1;
