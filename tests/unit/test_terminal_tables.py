"""What a person sees of a table on terminals of several widths."""

import re

import pytest

from shared.terminal_tables import print_table

NIGHT = "invoice-run:2026-08-25T02:00Z"
HEADINGS = ("alert", "kind", "subject", "told", "what")
ROWS = [
    (7, "not_claimed", NIGHT, None, f"{NIGHT} was due, and nobody has claimed it"),
    (8, "missed", "usage", "once", ""),
]


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    monkeypatch.setenv("TTY_COMPATIBLE", "1")
    return monkeypatch


def lines(capsys: pytest.CaptureFixture[str]) -> list[str]:
    return [line.strip() for line in re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out).splitlines()]


def test_a_table_that_is_too_wide_is_shown_row_below_row_with_every_name_whole(
    terminal: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal.setenv("COLUMNS", "80")
    print_table("Open alerts", HEADINGS, ROWS)
    shown = lines(capsys)
    assert [" ".join(line.split()) for line in shown if line] == [
        "Open alerts",
        "alert 7",
        "kind not_claimed",
        f"subject {NIGHT}",
        f"what {NIGHT} was due, and nobody has claimed it",
        "alert 8",
        "kind missed",
        "subject usage",
        "told once",
    ]


@pytest.mark.parametrize("width", [95, 110, 150])
def test_a_table_that_fits_is_drawn_without_cutting_a_word(
    terminal: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], width: int
) -> None:
    terminal.setenv("COLUMNS", str(width))
    print_table("", HEADINGS, ROWS)
    shown = lines(capsys)
    assert max(map(len, shown)) <= width
    assert sum(line.count(NIGHT) for line in shown) == 2
    assert any("not_claimed" in line for line in shown)
