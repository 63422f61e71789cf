"""Jobs, claims and looks at what is recorded, for the tests of the trigger's steps."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from schemas.message import WorkMessage, decode
from shared.accounts import AccountSource
from shared.broker import Outgoing, PublishFailed
from shared.job import Cron, Decisions, Job, PerAccount, SqlAccounts, hours, minutes
from shared.postgres import Database, Session
from trigger.claim import Claim, Claimant, Nothing, Won, claim_due
from trigger.fan_out import FanOut, FanOutEnd, fan_out
from trigger.plan import plan_ahead
from trigger.register import register

DUE = datetime(2026, 8, 25, 2, 0, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
LEASE = timedelta(seconds=30)
TABLE = "create table account (id text, place bigint)"


def decisions(**changes: Any) -> Decisions:
    """Give decisions that differ from the usual ones as said."""
    usual: dict[str, Any] = {
        "catch_up": "latest",
        "catch_up_within": hours(20),
        "overlap": "skip",
        "start_within": minutes(10),
        "finish_within": hours(3),
    }
    return Decisions(**(usual | changes))


def job_at(
    cron: str = "0 2 * * *", *, name: str = "nightly", accounts: AccountSource | None = None, **more: Any
) -> Job:
    """Declare a job that is due at some time of the day."""
    usual: dict[str, Any] = {"handler": PerAccount("billing.invoices:invoice"), "decisions": decisions()}
    source = accounts or SqlAccounts("select id as account from account", page_size=1000)
    return Job(name, schedule=Cron(cron), accounts=source, **(usual | more))


def claimant(name: str = "one") -> Claimant:
    """Give an instance that attempts."""
    return Claimant(name, "north", LEASE)


async def live(
    session: Session, *names: str, since: datetime = DUE - DAY, revision: int = 1, job: str = "nightly"
) -> None:
    """Record live triggers."""
    for name in names:
        await session.execute(
            """insert into matins.instance (id, kind, host, version, message_version, tzdata_version, started_at, jobs)
               values ($1, 'trigger', 'test', '0', 1, 'test', $2, $3)""",
            name,
            since,
            {job: revision},
        )


async def planned(session: Session, job: Job, now: datetime, *, instance: str = "one") -> int:
    """Register a job and plan it ahead, as a process does at `now`; give the revision."""
    revision = (await register(session, job, instance=instance, now=now)).revision
    while (await plan_ahead(session, job, revision, now=now, by=instance)).more:
        pass
    return revision


async def claimed(session: Session, job: Job, now: datetime = DUE) -> Claim:
    """Plan the day before and claim what is due at `now`."""
    revision = await planned(session, job, now - DAY)
    outcome = await claim_due(session, job, revision, claimant(), now=now)
    assert isinstance(outcome, Won)
    return outcome.claim


async def turn(database: Database, session: Session, job: Job, now: datetime) -> list[str]:
    """Do what a trigger does at an instant of the database's clock; give the instants that it ran, to the end."""
    revision = await planned(session, job, now)
    ran: list[str] = []
    while True:
        outcome = await claim_due(session, job, revision, claimant(), now=now)
        if isinstance(outcome, Won):
            assert await fanned_out(database, job, outcome.claim) is FanOutEnd.SEALED
            ran.append(f"{outcome.claim.identity.scheduled_at:%Y-%m-%dT%H:%M:%SZ}")
        elif not (isinstance(outcome, Nothing) and outcome.more):
            return ran


async def end(session: Session, job: Job, now: datetime | None = None) -> None:
    """End what is active of a job, as the ordinary close does, at `now` or when it was claimed."""
    await session.execute(
        """update matins.occurrence
              set state = case ending when 'cancel' then 'cancelled' else 'succeeded' end, reason = ending_reason,
                  closed_at = coalesce($2, claimed_at), report = '{}', lease_until = null,
                  total = 0, succeeded = 0, failed = 0, dead = 0, cancelled = 0
            where job = $1 and state in ('claimed', 'running')""",
        job.name,
        now,
    )


async def states(session: Session, job: str = "nightly") -> dict[str, str]:
    """Give the state of each scheduled instant, with the reason of one that was skipped; keys as `25 02:00`."""
    rows = await session.fetch(
        """select scheduled_at, state, reason from matins.occurrence where job = $1 and variant = ''
            order by scheduled_at""",
        job,
    )
    return {
        f"{row['scheduled_at']:%d %H:%M}": f"skipped: {row['reason']}" if row["state"] == "skipped" else row["state"]
        for row in rows
    }


async def attempts(session: Session, job: str = "nightly") -> list[tuple[str, bool]]:
    """Give who attempted, and whether they won, in order."""
    rows = await session.fetch(
        "select instance, won from matins.attempt where job = $1 order by scheduled_at, instance", job
    )
    return [(row["instance"], row["won"]) for row in rows]


async def fill(session: Session, count: int) -> None:
    """Make accounts `account-00001`…, five to a place."""
    await session.execute(TABLE)
    await session.execute(
        """insert into account
           select 'account-' || lpad(n::text, greatest(5, length(n::text)), '0'), n / 5
             from generate_series(1, $1::integer) n""",
        count,
    )


async def fanned_out(database: Database, job: Job, claim: Claim) -> FanOutEnd:
    """Fan a claim out to its end."""
    return await fan_out(FanOut(database, job, claimant()), claim)


async def ledger_accounts(session: Session, claim: Claim) -> list[tuple[str, int]]:
    """Give an occurrence's accounts with their positions, in that order."""
    rows = await session.fetch(
        "select account, position from matins.ledger where occurrence_id = $1 order by position", claim.id
    )
    return [(row["account"], row["position"]) for row in rows]


class Broker:
    """Takes messages as a broker does, and confirms all but those that `refuses` names by their number."""

    def __init__(self) -> None:
        self.messages: list[WorkMessage] = []
        self.refused: set[int] = set()
        self._number = 0

    async def send(self, outgoing: Sequence[Outgoing]) -> list[PublishFailed | None]:
        """Take some messages."""
        outcomes: list[PublishFailed | None] = []
        for message in outgoing:
            self._number += 1
            if self._number in self.refused:
                outcomes.append(PublishFailed("no confirm", ambiguous=True))
                continue
            self.messages.append(decode(message.body))
            outcomes.append(None)
        return outcomes

    def accounts(self) -> list[str]:
        """Give every account that was published, in order."""
        return [account for message in self.messages for account in message.accounts]
