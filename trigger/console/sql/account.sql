-- Reads everything about one account of an occurrence; a text that is too long for a page is cut behind what it shows, and
-- its length told. $1 occurrence id, $2 its scheduled_at, $3 account.
select l.account, l.position, l.state, l.generation, l.epoch, l.attempts, l.starts, l.isolated, l.nothing_to_do, l.key_salt,
       l.not_before, l.published_at, l.lease_until, l.started_at, l.finished_at, l.worker, l.error_class,
       left(l.error, 8000) as error, length(l.error) as error_length, left(jsonb_pretty(l.result), 8000) as result,
       length(jsonb_pretty(l.result)) as result_length, l.trace_context, i.host as worker_host, i.version as worker_version
  from matins.ledger l
  left join matins.instance i on i.id = l.worker
 where l.occurrence_id = $1 and l.scheduled_at = $2 and l.account = $3::text;
