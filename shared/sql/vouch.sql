-- Records which server the database is whole on; not while everything is held, since then nobody knows. $1 server.
update matins.environment set server = $1 where server is distinct from $1 and held_since is null;
