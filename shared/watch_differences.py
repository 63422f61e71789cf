"""Live processes that hold different definitions of a job for longer than a deploy takes: `config_mismatch`."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Final

from shared.differences import Difference, read_differences
from shared.postgres import Session, database_now
from shared.watch import Detector, Finding, written

# A rolling deploy has both for a while, as it should.
DEPLOYED_WITHIN: Final = timedelta(minutes=10)


async def look(session: Session, now: datetime | None) -> Sequence[Finding]:
    """Find the jobs of which live processes have held several definitions for long."""
    differences = await read_differences(session, now=now)
    if not differences:
        return []
    present = now or await database_now(session)
    return [_finding(one) for one in differences if present - one.since > DEPLOYED_WITHIN]


def _finding(difference: Difference) -> Finding:
    sides = [{"fingerprint": one.fingerprint, "instances": list(one.instances)} for one in difference.sides]
    detail = {"since": written(difference.since), "sides": sides}
    return Finding("config_mismatch", difference.job, str(difference), difference.job, None, detail)


DIFFERENCES: Final = Detector("definitions", frozenset({"config_mismatch"}), look)
