-- Of which runs a switch was told that they have begun, and is still to be told how they have ended: asked at each pass.
create index delivery_begun on matins.delivery (channel, created_at) where event = 'start';
-- Of a notification that is deleted it is asked whether a delivery names it.
create index delivery_notification on matins.delivery (notification_id);
