"""The audit trail's and the alerts' pages read no table through, whatever is asked for and however long the past is."""

from datetime import timedelta
from typing import Any

import orjson
import pytest

from benchmarks.history import make_history
from shared.postgres import Session, database_now
from shared.zones import tzdata_version
from tests.support.ledger import session_on
from trigger.alert_standing import CRITICAL
from trigger.alerts import ALERT_EVENTS, ALERT_NOTICES, FIND_ALERT, LIST_ALERTS
from trigger.audit_trail import CHAIN_STATE, LIST_AUDIT, WAITING_COUNTED

ROWS = 200_000
MOST_READ = 20_000
LARGE = ("audit", "audit_chain", "occurrence", "ledger", "notification", "delivery")
NOTHING: dict[str, Any] = dict.fromkeys(("job", "at", "variant", "kinds", "actor", "since", "until"))
FILTERS = (
    "job",
    "rare job",
    "kind",
    "rare kind",
    "claim",
    "actor",
    "rare actor",
    "since",
    "until",
    "behind",
    "occurrence",
)


async def make_past(session: Session) -> None:
    """Write a long trail, sealed but for its end, and alerts that are over with what was told of them."""
    now = await database_now(session)
    await make_history(session, jobs=50, hours_ago=100, hours_ahead=49, now=now, zones=tzdata_version())
    await session.execute("alter table matins.audit disable trigger user")
    await session.execute(
        """insert into matins.audit (at, xid, kind, job, occurrence_id, instance, actor, actor_kind, detail)
           select clock_timestamp() - ($1 - n) * interval '10 seconds', '5',
                  case when n % 50000 = 7 then 'prune' when n % 500 = 3 then 'pause'
                       when n % 2 = 0 then 'claim' else 'closed' end,
                  case when n % 90000 = 9 then 'rare' else 'job-' || n % 50 end, n % 5000, 'one',
                  case when n % 500 = 3 then 'ann' when n % 80000 = 5 then 'bob' end,
                  case when n % 500 = 3 or n % 80000 = 5 then 'operator' end,
                  case when n % 1000 = 0 then jsonb_build_object('alert', n / 1000) else '{}' end
             from generate_series(1, $1::integer) n""",
        ROWS,
    )
    await session.execute("alter table matins.audit enable trigger user")
    await session.execute(
        """insert into matins.audit_chain (position, audit_id, digest, hash)
           select row_number() over (order by id), id, sha256(id::text::bytea), sha256(id::text::bytea)
             from matins.audit where id <= $1 - 100""",
        ROWS,
    )
    await session.execute(
        """insert into matins.audit_seal (number, era, first_look, position, hash, rows, through_xid, through_id,
                                          highest_id, sealed_by)
           select 1, 1, false, max(position), sha256('x'), 5, '5', max(audit_id), max(audit_id), 'one'
             from matins.audit_chain"""
    )
    await session.execute(
        """insert into matins.alert (kind, subject, job, told, opened_by, closed_at, close_reason)
           select 'failed', 'job:' || n, 'job-' || n % 50, 'x', 'one',
                  clock_timestamp() - n * interval '1 minute', 'over' from generate_series(1, 100000) n"""
    )
    await session.execute(
        """insert into matins.notification (alert_id, event, body)
           select id, 'opened', '{}' from matins.alert order by id limit 50000"""
    )
    await session.execute("insert into matins.channel values ('team', now(), null)")
    await session.execute(
        """insert into matins.delivery (channel, thread, place, notification_id, event, state, created_at, not_before,
                                        ended_at)
           select 'team', 't', id, id, 'opened', 'delivered', now(), now(), now() from matins.notification"""
    )
    await session.execute("analyze")


async def asked_for(session: Session, what: str) -> tuple[Any, ...]:
    """Give what the page's statement is given."""
    now = await database_now(session)
    old = now - timedelta(days=20)
    named: dict[str, dict[str, Any]] = {
        "job": {"job": "job-3"},
        "rare job": {"job": "rare"},
        "kind": {"kinds": ["pause"]},
        "rare kind": {"kinds": ["prune"]},
        "claim": {"kinds": ["claim"]},
        "actor": {"actor": "ann"},
        "rare actor": {"actor": "bob"},
        "since": {"since": old},
        "until": {"until": old},
        "occurrence": {"job": "job-3", "at": old, "variant": ""},
    }
    behind = (old, ROWS // 2) if what == "behind" else (None, None)
    return (*(NOTHING | named.get(what, {})).values(), 51, *behind)


async def read_rows(session: Session, query: str, *arguments: Any) -> tuple[str, int]:
    """Run a statement; give its plan, and how many rows it has taken from tables and indexes."""
    ((found,),) = await session.fetch(f"explain (analyze, timing off, format json) {query}", *arguments)
    plans, rows = [found[0]["Plan"]], 0
    seen = []
    while plans:
        one = plans.pop()
        plans += one.get("Plans", [])
        if "Scan" in one["Node Type"]:
            seen.append(f"{one['Node Type']} {one.get('Relation Name')} {one.get('Index Name')}")
            rows += (one["Actual Rows"] + one.get("Rows Removed by Filter", 0)) * one["Actual Loops"]
    assert not [one for one in seen if one.startswith("Seq Scan") and one.split()[2] in LARGE], seen
    return str(seen), rows


@pytest.mark.timeout(240)
async def test_every_question_is_answered_from_an_index(database_url: str) -> None:
    async with session_on(database_url) as session:
        await session.set_type_codec("json", encoder=str, decoder=decode, schema="pg_catalog")
        await make_past(session)
        await session.execute("set plan_cache_mode = force_custom_plan")
        for what in ("", *FILTERS):
            plan, rows = await read_rows(session, LIST_AUDIT, *await asked_for(session, what))
            assert rows <= MOST_READ, (what, plan)
        # Two at once are answered from the narrower one.
        both = await asked_for(session, "job")
        plan, rows = await read_rows(session, LIST_AUDIT, *both[:3], ["prune"], *both[4:])
        assert rows <= MOST_READ, plan
        plan, rows = await read_rows(session, CHAIN_STATE, WAITING_COUNTED)
        assert rows <= MOST_READ, plan
        await session.execute("set plan_cache_mode = force_generic_plan")
        number = await session.fetchval("select max(id) from matins.alert")
        for query, arguments in (
            (FIND_ALERT, (number, None, None)),
            (ALERT_EVENTS, ("7",)),
            (ALERT_NOTICES, (7,)),
            (LIST_ALERTS, (False, None, None, None, list(CRITICAL), None, 50, 0)),
        ):
            plan, rows = await read_rows(session, query, *arguments)
            assert rows <= MOST_READ, plan


def decode(text: str) -> Any:
    """Read what an explanation is given as."""
    return orjson.loads(text)
