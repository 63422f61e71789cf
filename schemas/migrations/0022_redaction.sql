-- Puts a pseudonym in an account's place in a text: where the account stands alone, not as a part of a longer word.
create function matins.redact(value text, account text, pseudonym text) returns text
language sql immutable set search_path = pg_catalog, pg_temp as $$
    select regexp_replace(
        value, '(?<![[:alnum:]_])' || regexp_replace(account, '([^[:alnum:]])', '\\\1', 'g') || '(?![[:alnum:]_])',
        pseudonym, 'g');
$$;
revoke all on function matins.redact(text, text, text) from public;

-- The same in every string of a document, its keys too; a number is no account.
create function matins.redact_document(value jsonb, account text, pseudonym text) returns jsonb
language plpgsql immutable set search_path = pg_catalog, pg_temp as $$
begin
    return case jsonb_typeof(value)
        when 'string' then to_jsonb(matins.redact(value #>> '{}', account, pseudonym))
        when 'array' then coalesce((
            select jsonb_agg(matins.redact_document(one.item, account, pseudonym) order by one.place)
              from jsonb_array_elements(value) with ordinality as one (item, place)), '[]')
        when 'object' then coalesce((
            select jsonb_object_agg(matins.redact(one.key, account, pseudonym),
                                    matins.redact_document(one.item, account, pseudonym))
              from jsonb_each(value) as one (key, item)), '{}')
        else value
    end;
end
$$;
revoke all on function matins.redact_document(jsonb, text, text) from public;
