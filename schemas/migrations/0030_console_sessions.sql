-- Who is signed in to the console, whichever process serves it. Of a session's token only the digest is kept: whoever
-- reads the table is nobody for it.
create table matins.console_session (
    token_digest bytea primary key check (octet_length(token_digest) = 32),
    name         text not null check (name <> '' and length(name) <= 200),
    means        text not null check (means in ('oidc', 'proxy')),
    -- Who said so, and by which lasting id they know the person; empty where the name is all there is.
    issuer       text not null check (length(issuer) <= 500),
    subject      text not null check (length(subject) <= 500),
    -- What decides about the role, as it was said at the sign-in: the role itself is decided anew at each request.
    claims       text[] not null check (cardinality(claims) <= 500),
    created_at   timestamptz not null default clock_timestamp(),
    seen_at      timestamptz not null default clock_timestamp(),
    -- The last form that was acted on, and what the person is told of it.
    form         text,
    notice       text check (length(notice) <= 4000)
);
-- Sign-ins that were begun and not ended: each is used once, by the browser that began it, within minutes.
create table matins.console_sign_in (
    state_digest   bytea primary key check (octet_length(state_digest) = 32),
    browser_digest bytea not null check (octet_length(browser_digest) = 32),
    return_path    text not null check (length(return_path) <= 2000),
    created_at     timestamptz not null default clock_timestamp()
);
create index console_sign_in_created on matins.console_sign_in (created_at);
