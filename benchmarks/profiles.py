"""Where the time goes: the functions of the trigger and of one worker, and the statements of the database."""

import pstats
from pathlib import Path

from benchmarks.processes import SERVE_TRIGGER, SERVE_WORKER, our_fleet
from benchmarks.rounds import Contestant, run_ours, set_up
from benchmarks.site import prepared_site

SHOWN = 30
STATEMENTS = """
select calls, total_exec_time, total_exec_time / calls, left(regexp_replace(query, '\\s+', ' ', 'g'), 100)
  from pg_stat_statements
 where dbid = (select oid from pg_database where datname = current_database())
 order by total_exec_time desc
 limit 20"""


def run(contestant: Contestant, accounts: int, folder: Path) -> None:
    """Run one shape under the profiler, which slows it down, and print what took most time."""
    assert contestant.job is not None
    files = [folder / "trigger.profile", folder / "worker.profile"]
    profiled = [
        ("-m", "cProfile", "-o", str(file), *command)
        for file, command in zip(files, (SERVE_TRIGGER, SERVE_WORKER), strict=True)
    ]
    with prepared_site(statistics=True) as site:
        set_up(site, accounts)
        with our_fleet(site, folder, [*profiled, SERVE_WORKER]):
            site.run("select pg_stat_statements_reset()")
            done = run_ours(site, contestant.job, accounts)
            found = site.connection.execute(STATEMENTS).fetchall()
    for file in files:
        print(f"\n{file.stem}")
        pstats.Stats(str(file)).sort_stats("tottime").print_stats(SHOWN)
    print(f"{'calls':>9} {'ms':>9} {'ms each':>9}  statement")
    for calls, total, each, query in found:
        print(f"{calls:9,} {total:9,.0f} {each:9.3f}  {query}")
    print(f"\n{contestant.title}: {done.rate:,.0f}/s while profiled")
