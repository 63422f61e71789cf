-- Takes the row of an alert, so that of people and of the watch that close, repeat or silence it at once each finds what the
-- one before has left. $1 the alert's number.
select * from matins.alert where id = $1 for no key update;
