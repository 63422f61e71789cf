"""The soak's schedule follows from its seed and leaves no kind of fault out; its jobs are sound in any version."""

import re
from itertools import islice
from pathlib import Path

import pytest

from shared.load import load_jobs
from tests.soak.jobs import JOBS, module_text
from tests.soak.plan import LASTS, ORDINARY, WEIGHTS, segments
from tests.soak.run import ACTS

ROOT = Path(__file__).resolve().parents[2]


def test_a_seed_gives_the_same_schedule_and_another_seed_another() -> None:
    first, again, other = (list(islice(segments(seed), 20)) for seed in (7, 7, 8))
    assert first == again
    assert first != other


def test_every_kind_comes_up_before_one_comes_up_more_often_than_it_weighs() -> None:
    kinds = [event.kind for segment in islice(segments(3), 20) for event in segment.events]
    bag = sum(WEIGHTS.values())
    assert {kind: kinds[:bag].count(kind) for kind in WEIGHTS} == WEIGHTS
    assert set(ACTS) == set(WEIGHTS)
    assert set(LASTS) | ORDINARY <= set(WEIGHTS)


def test_a_segment_that_is_cut_keeps_what_begins_before() -> None:
    segment = next(segments(1))
    cut = segment.cut(20)
    assert cut.events == tuple(event for event in segment.events if event.at < 20)
    assert 0 < len(cut.events) < len(segment.events)


@pytest.mark.parametrize("version", [0, 1, 2, 99])
def test_every_version_of_the_jobs_is_sound(version: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    name = f"soak_jobs_{version}"
    (tmp_path / "provider").write_text("1")
    (tmp_path / f"{name}.py").write_text(module_text(version, "0 12 1 6 *"))
    monkeypatch.syspath_prepend(str(tmp_path))
    loaded = load_jobs((name,))
    assert loaded.faults == ()
    assert tuple(loaded.jobs) == JOBS


def test_every_kind_is_described_in_the_documentation() -> None:
    text = (ROOT / "docs" / "soak.md").read_text(encoding="utf-8")
    named = {
        kind for row in re.findall(r"^\| (`[^|]+`) \|", text, re.MULTILINE) for kind in re.findall(r"`(\w+)`", row)
    }
    assert named == set(WEIGHTS)
