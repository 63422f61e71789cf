-- Makes the ledger's partition for the month of an instant; of several who find it missing, one makes it. $1 instant.
select matins.ensure_ledger_partition($1);
