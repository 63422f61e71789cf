"""Zone names: always the bundled data, and never another zone than the one that was written."""

import json
import zoneinfo
from datetime import UTC, datetime
from importlib import resources
from pathlib import Path

import pytest

from shared import zones
from shared.errors import DeclarationError

TOKENS = json.loads(Path(__file__).parent.with_name("cases").joinpath("cron_tokens.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize("case", TOKENS["zones_refused"], ids=lambda case: ascii(case["zone"])[:30])
def test_a_name_that_is_not_a_zone_everywhere_is_refused_with_the_nearest(case: dict[str, str]) -> None:
    with pytest.raises(DeclarationError) as refusal:
        zones.find_zone(case["zone"])
    assert case["names"] in str(refusal.value)
    assert refusal.value.valid
    assert len(str(refusal.value)) < 300


@pytest.mark.parametrize("name", TOKENS["zones_accepted"])
def test_a_name_of_the_database_is_its_zone(name: str) -> None:
    assert str(zones.find_zone(name)) == name


@pytest.mark.parametrize("name", [None, 5, ["UTC"]])
def test_what_is_not_text_is_refused(name: str) -> None:
    with pytest.raises(DeclarationError):
        zones.find_zone(name)


def test_every_listed_zone_can_be_read() -> None:
    for name in zones.zone_names():
        assert datetime(2026, 1, 1, tzinfo=UTC).astimezone(zones.find_zone(name)).utcoffset() is not None


def test_the_bundled_data_wins_over_the_machines(tmp_path: Path) -> None:
    stale = resources.files("tzdata").joinpath("zoneinfo", "UTC").read_bytes()
    tmp_path.joinpath("America").mkdir()
    tmp_path.joinpath("America", "Vancouver").write_bytes(stale)
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath(to=[tmp_path])
    try:
        machines = zoneinfo.ZoneInfo.no_cache("America/Vancouver")
        found = zones.find_zone("America/Vancouver")
    finally:
        zoneinfo.reset_tzpath(to=before)
    instant = datetime(2026, 12, 1, tzinfo=UTC)
    assert instant.astimezone(machines).isoformat() == "2026-12-01T00:00:00+00:00"
    assert instant.astimezone(found).isoformat() == "2026-11-30T17:00:00-07:00"


@pytest.mark.parametrize(
    ("head", "words"),
    [("# version 2025b\n", "2025b"), ("no version\n", "unknown release"), (None, "unknown release")],
)
def test_another_release_on_the_machine_is_told(tmp_path: Path, head: str | None, words: str) -> None:
    tmp_path.joinpath("UTC").write_bytes(b"TZif")
    if head is not None:
        tmp_path.joinpath("tzdata.zi").write_text(head, encoding="utf-8")
    warning = _warning_with(tmp_path)
    assert warning is not None
    assert words in warning
    assert zones.tzdata_version() in warning
    assert str(tmp_path) in warning


def test_the_same_release_or_no_copy_is_no_warning(tmp_path: Path) -> None:
    assert _warning_with(tmp_path) is None
    tmp_path.joinpath("UTC").write_bytes(b"TZif")
    tmp_path.joinpath("tzdata.zi").write_text(f"# version {zones.tzdata_version()}\n", encoding="utf-8")
    assert _warning_with(tmp_path) is None


def _warning_with(machine: Path) -> str | None:
    before = zoneinfo.TZPATH
    zoneinfo.reset_tzpath(to=[machine])
    try:
        return zones.tzdata_warning()
    finally:
        zoneinfo.reset_tzpath(to=before)


def test_the_release_is_named_as_its_authors_do() -> None:
    assert zones.tzdata_version()[:4].isdigit()
    assert zones.tzdata_version()[4:].isalpha()


@pytest.mark.parametrize(
    ("name", "words"), [("Etc/GMT+2", "UTC-2"), ("Etc/GMT-14", "UTC+14"), ("Etc/GMT+0", None), ("Europe/Paris", None)]
)
def test_names_that_count_the_other_way_round_are_told(name: str, words: str | None) -> None:
    warning = zones.zone_warning(name)
    assert (warning is None) if words is None else (warning is not None and words in warning)
