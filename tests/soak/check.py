"""What must hold at a quiet point: the rules of every drill, and what only this place knows of its own accounts."""

from collections import Counter
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any

import orjson

from shared.postgres import Session
from tests.soak.jobs import MINUTE_JOBS, NIGHT_JOBS, POISONED_JOB
from tests.soak.place import Place
from tests.support.checker import INVARIANTS, check

SHOWN = 20
ORDINARY = "select id from account where id <> 'poison-0'"
ACCOUNTS = dict.fromkeys((*MINUTE_JOBS, *NIGHT_JOBS), ORDINARY) | {POISONED_JOB: "select id from account"}
# A wipe takes the parked messages too.
LOST_BY_A_WIPE = "dead without its parked message"
# Each query gives what breaks its rule, and nothing where it holds.
RULES = {
    "two occurrences of a job never run at once": """
        select a.job, a.scheduled_at, b.scheduled_at as other from matins.occurrence a
          join matins.occurrence b on b.job = a.job and b.id <> a.id
         where a.generation = 1 and b.generation = 1 and a.closed_at is not null and b.closed_at is not null
           and a.claimed_at <= b.claimed_at and b.claimed_at < a.closed_at""",
    "nobody but those who are bound to fails, or dies": """
        select o.job, o.scheduled_at, l.account, l.state, l.attempts, l.starts, l.error_class, l.error
          from matins.ledger l join matins.occurrence o on o.id = l.occurrence_id
         where (l.state = 'failed' and l.account !~ '^giveup')
            or (l.state = 'dead' and l.account !~ '^poison')
            or (l.state = 'succeeded' and l.account ~ '^poison')""",
    "what is cancelled was cancelled by somebody, or for want of its accounts": """
        select o.job, o.scheduled_at, o.state, o.reason, count(*) as accounts from matins.ledger l
          join matins.occurrence o on o.id = l.occurrence_id
         where l.state = 'cancelled' and o.ending is null and o.generation = 1 group by o.id""",
    "no account but those that there are": """
        select distinct l.account from matins.ledger l
         where not exists (select from account a where a.id = l.account)""",
}

Found = dict[str, Any]


async def judge(place: Place, session: Session, *, ended_at: datetime | None = None) -> list[Found]:
    """Judge everything, as JSON objects; with `ended_at` every process has ended, what was due later may wait."""
    found = [
        {"rule": one.rule, "invariant": INVARIANTS[one.rule], "row": one.row, "seen": one.seen}
        for one in await check(
            session,
            place.broker.url,
            at_rest=ended_at is not None,
            due_before=ended_at,
            outside_effects=Counter(place.provider.effects.values()),
            accounts=ACCOUNTS,
        )
        if not (place.wiped and one.rule == LOST_BY_A_WIPE)
    ]
    found += [
        {"rule": "a key is used for one account of one occurrence", "seen": one} for one in place.provider.misuses
    ]
    return [*found, *[one async for one in _own_rules(session)]][:SHOWN]


async def _own_rules(session: Session) -> AsyncIterator[Found]:
    for rule, query in RULES.items():
        for row in await session.fetch(f"{query} limit {SHOWN}"):
            yield {"rule": rule, "row": orjson.loads(orjson.dumps(dict(row), default=str))}
