-- Reads what migrate has made on the broker, and nobody has retired; takes no lock.
select topology from matins.environment;
