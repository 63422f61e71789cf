"""What differs between two recorded definitions of a job, in one line. Pure."""

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from trigger.console.policies import policies_of

MOST_NAMED: Final = 6
_LONGEST_VALUE: Final = 80


def definition_change(before: Mapping[str, Any] | None, after: Mapping[str, Any]) -> str:
    """Say what a definition changed, each value as a page writes it; what came before the first is None."""
    if before is None:
        return "the first definition"
    old, new = dict(_flat(before)), dict(_flat(after))
    words_old, words_new = _words(before), _words(after)
    told = []
    for name in dict.fromkeys([*old, *new]):
        if old.get(name) == new.get(name):
            continue
        one, other = (_value(name, *side) for side in ((old, words_old), (new, words_new)))
        told.append(f"{name}: {one} → {other}" if one != other else f"{name}: changed in what is too long to show")
    if not told:
        return "nothing of what it says"
    more = f"; and {len(told) - MOST_NAMED} more" if len(told) > MOST_NAMED else ""
    return "; ".join(told[:MOST_NAMED]) + more


def _flat(values: Mapping[str, Any], within: str = "") -> Iterator[tuple[str, str]]:
    """Give each value by its whole name, as canonical JSON; what was left out and what is null are the same."""
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{within}{name}.")
        elif value is not None:
            yield f"{within}{name}", json.dumps(value, sort_keys=True, ensure_ascii=False)


def _words(definition: Mapping[str, Any]) -> dict[str, str]:
    """Give values as they are written for a person, by name."""
    found: dict[str, str] = {}
    for part in policies_of(definition):
        for policy in part.policies:
            name, equals, value = policy.written.partition("=")
            if equals:
                found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def _value(name: str, values: Mapping[str, str], words: Mapping[str, str]) -> str:
    value = words.get(name, values.get(name, "nothing")) if name in values else "nothing"
    return value if len(value) <= _LONGEST_VALUE else f"{value[:_LONGEST_VALUE]}…"
