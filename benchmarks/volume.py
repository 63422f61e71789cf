"""What a million accounts cost: bytes of the write-ahead log and of the processes' logs, table bytes, statements."""

from pathlib import Path

from benchmarks.processes import our_fleet
from benchmarks.rounds import CONTESTANTS, run_ours, set_up
from benchmarks.site import prepared_site

MILLION = 1_000_000
# The benchmark's own looks are not the product's.
STATEMENTS = """
select coalesce(sum(calls), 0)::bigint from pg_stat_statements
 where dbid = (select oid from pg_database where datname = current_database())
   and query not like 'select count(*) from bench.invoice%' and query not like '%pg_stat_statements%'"""
LEDGER_BYTES = """
select coalesce(sum(pg_total_relation_size(inhrelid)), 0)::bigint from pg_inherits
 where inhparent = 'matins.ledger'::regclass"""


def run(singles: int, folder: Path) -> None:
    """Run each shape once and print its costs, put to a million accounts."""
    width = max(len(one.title) for one in CONTESTANTS)
    print(f"{'a million accounts':{width}}  {'WAL MB':>8}  {'ledger MB':>9}  {'log MB':>8}  {'statements':>12}")
    with prepared_site(statistics=True) as site:
        for one in CONTESTANTS:
            if one.job is None:
                continue
            accounts = one.accounts(singles)
            set_up(site, accounts)
            with our_fleet(site, folder) as fleet:
                site.run("select pg_stat_statements_reset()")
                begun_at = site.value("select pg_current_wal_lsn()::text")
                ledger = site.value(LEDGER_BYTES)
                run_ours(site, one.job, accounts)
                written = int(site.value("select pg_wal_lsn_diff(pg_current_wal_lsn(), %s::pg_lsn)", begun_at))
                costs = [written / 1e6, (site.value(LEDGER_BYTES) - ledger) / 1e6]
                costs.append(sum(process.log.stat().st_size for process in fleet) / 1e6)
                statements = site.value(STATEMENTS) * MILLION / accounts
            wal, rows, log = (cost * MILLION / accounts for cost in costs)
            print(f"{one.title:{width}}  {wal:8,.0f}  {rows:9,.0f}  {log:8,.1f}  {statements:12,.0f}", flush=True)
