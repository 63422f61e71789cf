"""What an operator looks up: every outcome of a call that is refused stands in docs/operations.md."""

import re
from pathlib import Path

from trigger.api_answers import STATUS

OPERATIONS = Path(__file__).resolve().parents[3] / "docs" / "operations.md"


def test_every_outcome_of_a_refused_call_is_explained() -> None:
    section = OPERATIONS.read_text("utf-8").partition("## When a call from outside is refused")[2].partition("\n## ")[0]
    cells = " ".join(line.split("|")[1] for line in section.splitlines() if line.startswith("| `"))
    told = {name for name in re.findall(r"`([a-z_]+)`", cells) if not name.startswith("unproven_")}
    assert told == set(STATUS)
