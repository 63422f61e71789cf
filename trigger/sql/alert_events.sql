-- Lists what has become of an alert and what people have done about it, in order. $1 the alert's number, as text.
select at, kind, instance, actor, reason, detail
  from matins.audit
 where detail ? 'alert' and detail ->> 'alert' = $1
 order by id;
