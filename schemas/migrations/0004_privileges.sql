-- What nobody may do by default. Rights are granted by `migrate`, which follows the manifest in schemas/privileges.py.
revoke all on schema matins from public;
revoke all on function matins.ensure_ledger_partition(timestamptz) from public;

-- It runs with its owner's rights, so nothing of its caller's session may change what it does: a month's bounds are
-- written as text and read again.
alter function matins.ensure_ledger_partition(timestamptz) set timezone to 'UTC';
alter function matins.ensure_ledger_partition(timestamptz) set datestyle to 'ISO, YMD';
