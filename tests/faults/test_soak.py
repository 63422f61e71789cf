"""The first seconds of a soak, with a fixed seed."""

from pathlib import Path

import pytest

from tests.soak.run import soak

pytestmark = [pytest.mark.drill, pytest.mark.timeout(240)]

SEED = 28
SECONDS = 20.0


async def test_a_short_soak_finds_nothing(tmp_path: Path) -> None:
    told: list[str] = []
    outcome = await soak(SEED, SECONDS, tmp_path, told.append)
    assert outcome.violations == [], "\n".join(map(str, [*outcome.recent, *outcome.violations]))
    assert outcome.segments >= 1
    assert outcome.summary["faults"] > 0
    assert outcome.summary["accounts"]["succeeded"] > 0
