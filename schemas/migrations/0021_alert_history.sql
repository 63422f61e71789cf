-- What was done about an alert is read by the alert, and open alerts are shown with their occurrence.
create index audit_alert on matins.audit ((detail ->> 'alert'), id) where detail ? 'alert';
create index alert_occurrence on matins.alert (occurrence_id, kind) where occurrence_id is not null;
