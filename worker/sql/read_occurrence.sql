-- What a worker needs of an occurrence; it trusts this row and never the message. $1 id.
select o.id, o.job, o.scheduled_at, o.variant, o.window_since, o.window_until, o.trace_context
  from matins.occurrence o
 where o.id = $1;
