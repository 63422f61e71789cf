-- Reads what migrate has made on the broker; locks the row, so that of several migrates each adds to the others' record.
select topology from matins.environment for update;
