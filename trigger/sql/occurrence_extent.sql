-- Reads how far the ids of the occurrences reach.
select coalesce(max(id), 0) as last from matins.occurrence;
