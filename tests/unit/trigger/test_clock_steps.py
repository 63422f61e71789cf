from datetime import UTC, datetime, timedelta

import pytest
import structlog

from trigger.clock_steps import ClockSteps

NOW = datetime(2026, 8, 25, 2, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    ("passed", "own", "answer_took", "told"),
    [
        (5.0, 5.0, 0.0, None),
        (9.0, 5.0, 0.0, None),
        (-600.0, 5.0, 0.0, -605.0),
        (86_400.0, 5.0, 0.0, 86_395.0),
        # The answer may have been written at any time while it was waited for.
        (5.0, 15.0, 10.0, None),
        (5.0, 25.0, 10.0, -20.0),
    ],
)
def test_a_step_is_told_and_drift_or_a_slow_answer_is_not(
    passed: float, own: float, answer_took: float, told: float | None
) -> None:
    steps = ClockSteps()
    with structlog.testing.capture_logs() as lines:
        steps.note(NOW, 100.0, 100.0)
        steps.note(NOW + timedelta(seconds=passed), 100.0 + own - answer_took, 100.0 + own)
    assert [line["seconds"] for line in lines] == ([] if told is None else [told])
