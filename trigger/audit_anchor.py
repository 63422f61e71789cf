"""Anchors: heads of the audit trail's chain, as they were kept somewhere else. Pure, but for reading the file.

An anchor is written `HASH@POSITION`. A file holds them line by line, or it holds the triggers' log: every line of the
event "audit sealed" is one.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

import orjson

from shared.terminal import Refused

_WRITTEN = re.compile(r"([0-9a-fA-F]{64})@([1-9][0-9]{0,17})", re.ASCII)
_LOGGED_TEXT = re.compile(r"position=([1-9][0-9]{0,17}) hash=([0-9a-f]{64})", re.ASCII)
EVENT = "audit sealed"


def read_anchors(given: str) -> dict[int, bytes]:
    """Read one anchor, or all of a file's: the hash by position. Raises Refused when there is none."""
    if match := _WRITTEN.fullmatch(given.strip()):
        return {int(match[2]): bytes.fromhex(match[1])}
    path = Path(given)
    if not path.is_file():
        raise Refused(f"--anchor: {given[:80]!r} is neither HASH@POSITION nor a file")
    with path.open(encoding="utf-8", errors="replace") as lines:
        anchors = anchors_of(lines)
    if not anchors:
        raise Refused(f'--anchor: no line of {given[:80]!r} is HASH@POSITION, or of the event "{EVENT}"')
    return anchors


def anchors_of(lines: Iterable[str]) -> dict[int, bytes]:
    """Read every anchor among lines. Raises Refused when two of them contradict one another."""
    anchors: dict[int, bytes] = {}
    for line in lines:
        found = _anchor(line)
        if found is None:
            continue
        position, hashed = found
        if anchors.setdefault(position, hashed) != hashed:
            raise Refused(f"--anchor: it names two hashes of position {position}: one of the two was of another chain")
    return anchors


def _anchor(line: str) -> tuple[int, bytes] | None:
    if match := _WRITTEN.fullmatch(line.strip()):
        return int(match[2]), bytes.fromhex(match[1])
    if EVENT not in line:
        return None
    if match := _LOGGED_TEXT.search(line):
        return int(match[1]), bytes.fromhex(match[2])
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return _logged(value) if isinstance(value, dict) else None


def _logged(value: Mapping[str, object]) -> tuple[int, bytes] | None:
    position, hashed = value.get("position"), value.get("hash")
    if value.get("event") != EVENT or not isinstance(position, int) or not isinstance(hashed, str):
        return None
    match = _WRITTEN.fullmatch(f"{hashed}@{position}")
    return None if match is None else (position, bytes.fromhex(hashed))
