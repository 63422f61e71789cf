-- Tells whether this login may see who is signed in: what it may see it may write, by the roles that there are.
select from matins.console_session limit 0;
