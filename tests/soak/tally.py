"""Counts: of what happened, from the audit, the tables, the logs, the provider and the broker's own counters."""

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import anyio
import orjson

from shared.postgres import Session
from tests.soak.acts_servers import manage
from tests.soak.stage import Stage

BROKER_SECONDS = 3.0
# What each count is, for the summary.
COUNTED = {
    "redeliveries": "the broker's own counter, read every 3 s; what came between a reading and its death is lost",
    "takeovers": "rows of the audit: fan-outs whose claim was taken over",
    "fenced": "log lines: settles and fan-outs that found the row another's and changed nothing",
    "swept": "log lines of the sweep: `expired` accounts of silent workers, `lost` messages sent again",
    "reruns": "rows of the audit",
    "replayed": "messages that the test's own publisher published again",
    "repeated_charges": "calls of the provider with a key that it had seen",
    "crashes": "by what the process was at: held at an arrow by a lock in the database, or as its sessions showed",
}
EVENTS = {
    "fenced": "a settle",
    "fan-out was taken over": "a fan-out",
}
# A line with one of these is a defect, whoever wrote it.
FAULTY = ("a part died", "service failed", "Traceback (most recent call last)")


@dataclass(slots=True)
class Tally:
    """Counts that must be kept while it runs, since their source may lose them."""

    redeliveries: int = 0
    _last: dict[str, int] = field(default_factory=dict)

    async def watch(self, stage: Stage) -> None:
        """Read the broker's counters until cancelled."""
        while True:
            for queue in await manage(stage, "GET", "/api/queues/%2F?columns=name,message_stats.redeliver") or []:
                stats: Any = queue.get("message_stats") or {}
                seen = int(stats.get("redeliver", 0))
                before = self._last.get(str(queue["name"]), 0)
                # A broker that was restarted counts from 0 again.
                self.redeliveries += seen - before if seen >= before else seen
                self._last[str(queue["name"])] = seen
            await anyio.sleep(BROKER_SECONDS)


async def of_tables(session: Session) -> dict[str, Any]:
    """Count what the tables hold."""
    ends = await session.fetch(
        "select state, coalesce(reason, '') as reason, count(*) from matins.occurrence group by 1, 2"
    )
    by_state: Counter[str] = Counter()
    for row in ends:
        told = row["reason"].partition(" by ")[0].partition(":")[0]
        by_state[f"{row['state']} ({told})" if row["state"] == "skipped" else row["state"]] += row["count"]
    audit = await session.fetch("select kind, count(*) from matins.audit group by kind order by kind")
    accounts = await session.fetch("select state, count(*) from matins.ledger group by state order by state")
    tries = await session.fetchrow(
        """select coalesce(sum(attempts), 0)::bigint as tries, count(*) filter (where attempts > 1) as retried,
                  count(*) filter (where generation > 1) as rerun from matins.ledger"""
    )
    revisions = await session.fetchval("select coalesce(sum(revision), 0) from matins.job")
    return {
        "occurrences": dict(sorted(by_state.items())),
        "accounts": {row["state"]: row["count"] for row in accounts},
        "tries": dict(tries or {}),
        "revisions": int(revisions),
        "audit": {row["kind"]: row["count"] for row in audit},
    }


def of_logs(stage: Stage) -> dict[str, Any]:
    """Count what the processes said."""
    fenced: Counter[str] = Counter()
    swept: Counter[str] = Counter()
    said: Counter[str] = Counter()
    for path in sorted(stage.place.folder.glob("*.log")):
        for text in path.read_bytes().splitlines():
            if not text.startswith(b"{"):
                continue
            try:
                line = orjson.loads(text)
            except orjson.JSONDecodeError:
                continue
            event = str(line.get("event"))
            if event in EVENTS:
                fenced[EVENTS[event]] += 1
            if event == "swept":
                swept["expired"] += line["expired"]
                swept["lost"] += line["lost"]
            if line.get("level") in {"warning", "error", "critical"}:
                said[event] += 1
    return {"fenced": dict(fenced), "swept": dict(swept), "warnings": dict(said.most_common())}


def faulty_lines(stage: Stage) -> list[str]:
    """Give the first of each log's lines that no fault excuses."""
    found = []
    for path in sorted(stage.place.folder.glob("*.log")):
        for text in path.read_text(errors="replace").splitlines():
            if any(one in text for one in FAULTY):
                found.append(f"{path.name}: {text[:2000]}")
                break
    found += [
        f"{' '.join(said.arguments)} exited {said.code}: {said.output[-1500:]}"
        for said in stage.place.commands
        if said.code not in {0, 1, 2} or "Traceback" in said.output
    ]
    return found
