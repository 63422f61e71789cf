import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from shared import logs
from shared.masking import LONGEST_TEXT, know_secret, know_secrets_of, mask, plain, plain_value

Output = pytest.CaptureFixture[str]
ROOT = Path(__file__).parents[2]
log = logs.logger("tests.unit")


@pytest.fixture(autouse=True)
def json_lines() -> None:
    logs.configure("info", "json", service="matins-worker", instance="i-1")


def written(output: Output) -> list[dict[str, Any]]:
    return [json.loads(line) for line in output.readouterr().out.splitlines()]


def test_a_line_says_when_who_and_what(capsys: Output) -> None:
    log.info("claimed", job="invoice-run", due=datetime(2026, 8, 25, 2, tzinfo=UTC), lag=timedelta(seconds=1.5))

    [line] = written(capsys)
    assert datetime.fromisoformat(line.pop("ts")).utcoffset() == timedelta(0)
    assert line == {
        "level": "info",
        "event": "claimed",
        "service": "matins-worker",
        "instance": "i-1",
        "module": "tests.unit",
        "job": "invoice-run",
        "due": "2026-08-25T02:00:00Z",
        "lag": 1.5,
    }


def test_levels_below_the_one_chosen_are_not_written(capsys: Output) -> None:
    log.debug("quiet")
    logs.configure("warning", "json", service="matins-worker", instance="i-1")
    log.info("quiet too")
    log.warning("loud")

    assert [line["event"] for line in written(capsys)] == ["loud"]


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="'loud' is no log level"):
        logs.configure("loud", "json", service="matins-worker", instance="i-1")


def test_values_cannot_replace_what_every_line_says(capsys: Output) -> None:
    log.info("claimed", service="forged", ts="never")

    [line] = written(capsys)
    assert (line["service"], line["service_"], line["ts_"]) == ("matins-worker", "forged", "never")


def test_the_standard_library_comes_out_of_the_same_place_from_warning_on(capsys: Output) -> None:
    logging.getLogger("asyncpg.pool").info("quiet")
    logging.getLogger("asyncpg.pool").warning("lost %s", "amqp://guest:secret@broker/")

    [line] = written(capsys)
    assert (line["level"], line["module"]) == ("warning", "asyncpg.pool")
    assert line["event"] == "lost amqp://guest:***@broker/"


def test_a_process_writes_json_and_its_warnings_when_nobody_watches() -> None:
    code = (
        "import warnings; from shared import logs;"
        "logs.configure('info', 'auto', service='matins-worker', instance='i-1'); warnings.warn('careful')"
    )
    done = subprocess.run((sys.executable, "-c", code), cwd=ROOT, capture_output=True, text=True, check=True)

    line = json.loads(done.stdout)
    assert (line["module"], line["level"]) == ("py.warnings", "warning")
    assert "UserWarning: careful" in line["event"]
    assert done.stderr == ""


def test_configuring_again_does_not_write_lines_twice(capsys: Output) -> None:
    logs.configure("info", "json", service="matins-worker", instance="i-1")
    logging.getLogger("asyncpg").error("once")

    assert len(written(capsys)) == 1


def test_bound_values_are_on_every_line_inside(capsys: Output) -> None:
    with logs.bound(job="invoice-run"):
        log.info("inside")
        logging.getLogger("billing").warning("inside too")
    log.info("outside")

    assert [line.get("job") for line in written(capsys)] == ["invoice-run", "invoice-run", None]


def test_an_exception_is_written_with_its_traceback_and_without_secrets(capsys: Output) -> None:
    error = ConnectionError("no route to postgresql://matins:hunter2@database/matins")
    log.error("the database is away", exc_info=error)

    [line] = written(capsys)
    assert line["level"] == "error"
    assert "ConnectionError: no route to postgresql://matins:***@database/matins" in line["exception"]
    assert "hunter2" not in line["exception"]


def test_the_current_trace_is_named(capsys: Output, no_trace_afterwards: None) -> None:
    logs.identify_traces(lambda: ("a" * 32, "b" * 16))
    log.info("executed")

    [line] = written(capsys)
    assert (line["trace_id"], line["span_id"]) == ("a" * 32, "b" * 16)


@pytest.fixture
def no_trace_afterwards() -> Iterator[None]:
    yield
    logs.identify_traces(lambda: None)


def test_text_is_one_line_whatever_the_values_hold(capsys: Output) -> None:
    logs.configure("info", "text", service="matins-worker", instance="i-1")
    log.info("done\nforged", account="two words", note="a\nERROR forged\x1b[31m", count=3)

    text = capsys.readouterr().out
    assert text.count("\n") == 1
    assert text.endswith('INFO     done\\nforged account="two words" note="a\\nERROR forged\\\\x1b[31m" count=3\n')


def test_the_lines_of_a_traceback_are_indented_in_text(capsys: Output) -> None:
    logs.configure("info", "text", service="matins-worker", instance="i-1")
    log.error("failed", exc_info=ValueError("bad\n2026-01-01 ERROR forged"))

    head, *rest = capsys.readouterr().out.splitlines()
    assert head.endswith("failed")
    assert rest
    assert all(line.startswith("    ") for line in rest)


def test_values_that_json_does_not_know_are_written_all_the_same(capsys: Output) -> None:
    class Mute:
        def __str__(self) -> str:
            raise RuntimeError("I say nothing")

    log.info("odd", big=2**80, nothing=float("nan"), raw=b"\x00", mute=Mute(), half="\ud800", many=set(range(60)))

    [line] = written(capsys)
    assert (line["big"], line["nothing"], line["raw"]) == (str(2**80), "nan", "b'\\x00'")
    assert (line["mute"], line["half"]) == ("<Mute: RuntimeError>", "\\ud800")
    assert len(line["many"]) == 51
    assert line["many"][-1] == "…10 more"


def test_a_long_value_is_cut_and_says_so() -> None:
    shown = plain("n" * 10_000)
    assert shown == "n" * LONGEST_TEXT + "…[cut from 10000 characters]"


def test_deep_values_are_flattened() -> None:
    value: object = "core"
    for _ in range(100):
        value = [value]
    assert len(str(plain_value(value))) < LONGEST_TEXT


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("amqp://guest:guest@localhost:5672/%2f", "amqp://guest:***@localhost:5672/%2f"),
        ("postgresql://u:p@ss@host/db", "postgresql://u:***@host/db"),
        ("amqps://u:sla/sh@host/", "amqps://u:***@host/"),
        ("https://:token@host", "https://:***@host"),
        ("two: a://b:c@d e://f:g@h", "two: a://b:***@d e://f:***@h"),
        ("http://localhost:4318/v1?to=a@b", "http://localhost:4318/v1?to=a@b"),
        ("postgresql://matins@host/db", "postgresql://matins@host/db"),
        ("host=db password=hunter2 user=matins", "host=db password=*** user=matins"),
        ("https://hook/?token=abc&job=a", "https://hook/?token=***&job=a"),
        ("an account: 17", "an account: 17"),
    ],
)
def test_secrets_are_masked(said: str, shown: str) -> None:
    assert mask(said) == shown


@pytest.mark.parametrize(
    "form",
    [
        "kept/Back@once:é%",
        "kept%2FBack%40once%3A%C3%A9%25",
        "kept%2fback%40once%3a%c3%a9%25",
        r"kept/Back@once:\xc3\xa9%",
    ],
)
def test_a_password_that_was_read_is_known_however_it_is_written(form: str) -> None:
    know_secrets_of("amqps://someone:kept%2FBack%40once%3A%C3%A9%25@broker:5671/matins?cafile=/a.pem")
    assert mask(f"it said {form!s}, twice: {form}") == "it said ***, twice: ***"
    assert plain(f"{'n' * (LONGEST_TEXT - 5)}{form}").startswith(f"{'n' * (LONGEST_TEXT - 5)}***")


def test_short_passwords_are_not_looked_for_and_words_not_inside_of_words() -> None:
    know_secret("matins")
    know_secret("dispatch")
    assert mask("matins dispatches to the dispatch") == "matins dispatches to the ***"


def test_control_characters_and_marks_that_reorder_text_are_escaped() -> None:
    assert plain("a\x00\x1b[2J\x9b\u202eb\r\n\tc") == "a\\x00\\x1b[2J\\x9b\\u202eb\\x0d\n\tc"


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def test_failures_of_a_class_are_limited_and_counted(capsys: Output) -> None:
    clock = Clock()
    failures = logs.FailureLog(log, limit_per_minute=2, monotonic=clock)

    shown = [failures.failure("failed", job="charge", error_class="Timeout", account=str(n)) for n in range(5)]
    other = failures.failure("failed", job="charge", error_class="Refused", account="9")
    clock.seconds = 61.0
    failures.report()
    again = failures.failure("failed", job="charge", error_class="Timeout", account="10")

    assert shown == [True, True, False, False, False]
    assert (other, again) == (True, True)
    lines = written(capsys)
    assert [line.get("account") for line in lines] == ["0", "1", "9", None, "10"]
    assert (lines[3]["event"], lines[3]["error_class"], lines[3]["suppressed"]) == ("failures not shown", "Timeout", 3)


def test_what_was_not_shown_is_counted_at_the_end(capsys: Output) -> None:
    failures = logs.FailureLog(log, limit_per_minute=1, monotonic=Clock())
    for _ in range(3):
        failures.failure("failed", job="charge", error_class="Timeout", error=TimeoutError("slow"))
    failures.report(everything=True)

    first, last = written(capsys)
    assert "TimeoutError: slow" in first["exception"]
    assert last["suppressed"] == 2


def test_endlessly_many_classes_take_bounded_memory(capsys: Output) -> None:
    failures = logs.FailureLog(log, limit_per_minute=1, monotonic=Clock())
    shown = [failures.failure("failed", job="charge", error_class=f"Class{n}") for n in range(1500)]

    assert sum(shown) == 1001
