"""One round of one contestant: the same accounts, the same table, the database's clock."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path

from benchmarks import peer
from benchmarks.processes import our_fleet, peer_fleet
from benchmarks.site import Site

STALLED_SECONDS = 60.0
POLL_SECONDS = 0.1
# A look at the table must not cost more than this share of the time.
LOOKING_SHARE = 0.05

FILL = """
insert into bench.account
select 'acct-' || lpad(number::text, 9, '0') from generate_series(1, %s::integer) as given (number)"""
EXPECT = """
with due as (select date_trunc('second', clock_timestamp()) as at)
insert into matins.occurrence (job, scheduled_at, revision, window_since, window_until, tzdata_version)
select job.name, due.at, job.revision, due.at - interval '1 day', due.at, ''
  from due, matins.job, matins.ensure_ledger_partition(due.at)
 where job.name = %s
returning id"""
CLOSED = "select state, total, succeeded, claimed_at from matins.occurrence where id = %s and closed_at is not null"


@dataclass(frozen=True)
class Contestant:
    """A way to do the work: its key in the results, its job (none for the peer), how many accounts it is given."""

    key: str
    title: str
    job: str | None
    share: int

    def accounts(self, singles: int) -> int:
        """Give the number of accounts, where one account a message does `singles`."""
        return singles * self.share


PEER = Contestant("peer", "Celery, one account a message, prefork 2, acks late", None, 1)
CONTESTANTS = (
    PEER,
    Contestant("one_account_transaction", "one account a message, a transaction each", "one-account-transaction", 1),
    Contestant("one_account_batched", "one account a message, settled in batches", "one-account-batched", 2),
    Contestant("chunk_100_run", "100 accounts a message, a savepoint each", "chunk-100-run", 10),
    Contestant("chunk_100_set", "100 accounts a message, one statement a chunk", "chunk-100-set", 20),
)


@dataclass(frozen=True)
class Done:
    """What a round did: accounts, the database's instants at its begin and of its last invoice, our occurrence's id."""

    accounts: int
    began_at: datetime
    ended_at: datetime
    occurrence: int | None = None

    @property
    def seconds(self) -> float:
        """How long it took."""
        return (self.ended_at - self.began_at).total_seconds()

    @property
    def rate(self) -> float:
        """Accounts per second."""
        return self.accounts / self.seconds


def set_up(site: Site, accounts: int) -> None:
    """Give every contestant the same beginning: accounts, no invoice, and nothing left to write to disk."""
    site.run("truncate bench.account, bench.invoice")
    site.run(FILL, accounts)
    site.run("vacuum analyze bench.account")
    site.run("checkpoint")


def take_part(contestant: Contestant, site: Site, accounts: int, folder: Path) -> Done:
    """Do one round of a contestant, with processes of its own."""
    set_up(site, accounts)
    if contestant.job is None:
        with peer_fleet(site, folder):
            return run_peer(site, accounts)
    with our_fleet(site, folder):
        return run_ours(site, contestant.job, accounts)


def run_peer(site: Site, accounts: int) -> Done:
    """Have the peer fan out and do everything."""
    with peer.application.connection_for_write(site.broker_url) as connection:
        began_at = site.value("select clock_timestamp()")
        peer.fan_out.apply_async((accounts,), connection=connection)
        return finished(site, accounts, began_at)


def run_ours(site: Site, job: str, accounts: int, watching: Callable[[], None] = lambda: None) -> Done:
    """Have an occurrence fall due, and wait until it is closed; the time begins at its claim."""
    deadline = time.monotonic() + STALLED_SECONDS
    while not (occurrence := site.value(EXPECT, job)):
        assert time.monotonic() < deadline, "the trigger has not registered the job"
        time.sleep(POLL_SECONDS)
    wait_for_invoices(site, accounts, watching)
    while not (closed := site.connection.execute(CLOSED, (occurrence,)).fetchone()):
        assert time.monotonic() < deadline + 600, "the occurrence was not closed"
        time.sleep(POLL_SECONDS)
    state, total, succeeded, claimed_at = closed
    assert (state, total, succeeded) == ("succeeded", accounts, accounts), (state, total, succeeded)
    return replace(finished(site, accounts, claimed_at), occurrence=occurrence)


def finished(site: Site, accounts: int, began_at: datetime) -> Done:
    """Give what was done once all invoices stand."""
    wait_for_invoices(site, accounts)
    return Done(accounts, began_at, site.value("select max(issued_at) from bench.invoice"))


def wait_for_invoices(site: Site, accounts: int, watching: Callable[[], None] = lambda: None) -> None:
    """Look until every account has its invoice; raises AssertionError when nothing moves any more."""
    known, moved_at = -1, time.monotonic()
    while True:
        before = time.monotonic()
        found = site.value("select count(*) from bench.invoice")
        if found == accounts:
            return
        if found != known:
            known, moved_at = found, before
        assert before - moved_at < STALLED_SECONDS, f"stalled at {found} of {accounts} accounts"
        watching()
        time.sleep(max(POLL_SECONDS, (time.monotonic() - before) / LOOKING_SHARE))
