-- Names every job that the database knows, for an answer to a name that it doesn't.
select name from matins.job order by name;
