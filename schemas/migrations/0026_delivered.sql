-- When a channel last delivered something is asked for at every look at the channels.
create index delivery_delivered on matins.delivery (channel, ended_at) where state = 'delivered';
