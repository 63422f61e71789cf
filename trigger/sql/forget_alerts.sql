-- Puts the pseudonym into alerts, into what is to be told, or was told, of them, and into what receivers have answered. $1 account, $2 pseudonym.
with alerts as (
    update matins.alert
       set told = matins.redact(told, $1, $2), detail = matins.redact_document(detail, $1, $2),
           acknowledge_reason = matins.redact(acknowledge_reason, $1, $2),
           silence_reason = matins.redact(silence_reason, $1, $2), close_reason = matins.redact(close_reason, $1, $2)
     where strpos(concat_ws(' ', told, detail::text, acknowledge_reason, silence_reason, close_reason),
                  btrim(to_json($1::text)::text, '"')) > 0
    returning 1)
, notifications as (
    update matins.notification
       set body = matins.redact_document(body, $1, $2)
     where strpos(body::text, btrim(to_json($1::text)::text, '"')) > 0
    returning 1)
, answers as (
    update matins.delivery
       set error = matins.redact(error, $1, $2)
     where strpos(error, $1) > 0
    returning 1)
select (select count(*) from alerts) + (select count(*) from notifications) + (select count(*) from answers);
