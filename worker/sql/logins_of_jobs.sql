-- Lists which logins are recorded as those of some jobs. $1 jobs.
select login::text, job from matins.handler_login where job = any ($1::text[]);
