-- Reads whether everything is held, and which server the database was last known to be whole on.
select held_since, held_reason, known_through, server from matins.environment;
