-- Records that every account up to a position has been published for the first time; of two publishers whose lease has
-- changed hands, each says what it has sent itself. $1 occurrence id, $2 through position, $3 published at.
insert into matins.publication (occurrence_id, through_position, published_at)
values ($1, $2, $3)
on conflict do nothing;
