-- Lists the logins that jobs have for themselves, each with its job.
select login::text, job from matins.handler_login order by login, job;
