"""The drill book of docs/reliability.md is whole, its tests exist, and it lists the checker's rules as they are."""

import ast
import json
import re
from functools import cache

import pytest

from tests.architecture.sources import ROOT
from tests.support.checker import INVARIANTS

BOOK = (ROOT / "docs" / "reliability.md").read_text()
ROW = re.compile(r"^\| (?P<id>[A-Z]+\d+[a-z]?) \| (?P<rest>.*) \|$", re.MULTILINE)
TEST = re.compile(r"`(tests/[\w/]+\.py)::([^`]+)`")
CASES = json.loads((ROOT / "tests" / "cases" / "case_ids.json").read_text())
IDS = [
    *(f"F{number}" for number in range(1, 66)),
    *(f"S{number}" for number in (*range(1, 13), 14)),
    *(f"I{number}" for number in range(1, 14)),
    *(name for names in CASES.values() for name in names),
]


def rows() -> list[tuple[str, list[str]]]:
    drills = BOOK[BOOK.index("## The drill book") :]
    return [(found["id"], found["rest"].split(" | ")) for found in ROW.finditer(drills)]


@cache
def defined(path: str) -> frozenset[str]:
    tree = ast.parse((ROOT / path).read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return frozenset(node.name for node in ast.walk(tree) if isinstance(node, kinds))


def test_every_fault_invariant_and_case_has_its_row() -> None:
    listed = {name.rstrip("abcdefgh") for name, _ in rows()}
    assert [name for name in IDS if name not in listed] == []


def test_every_row_has_a_fault_a_promise_and_a_test_that_exists() -> None:
    for name, cells in rows():
        assert len(cells) == 4, name
        fault, _, promise, tests = cells
        assert fault, name
        assert promise, name
        named = TEST.findall(tests)
        assert named, f"{name} names no test"
        assert "<br>".join(f"`{path}::{test}`" for path, test in named) == tests, f"{name} names more than tests"
        for path, test in named:
            assert (ROOT / path).exists(), f"{name}: {path}"
            assert test.split("[")[0].split("::")[-1] in defined(path), f"{name}: {path}::{test}"


@pytest.mark.parametrize("invariant", sorted(set(INVARIANTS.values())))
def test_the_checkers_rules_are_listed(invariant: str) -> None:
    rules = "; ".join(rule for rule, belongs in INVARIANTS.items() if belongs == invariant)
    assert f"| {invariant} | {rules} |" in BOOK


@pytest.mark.parametrize("kind", CASES)
def test_every_case_stands_in_the_table_of_its_kind(kind: str) -> None:
    table = BOOK[BOOK.index(f"### Cases: {kind}") :].partition("\n### ")[0]
    assert [name for name in CASES[kind] if not re.search(rf"^\| {name}[a-z]? \|", table, re.MULTILINE)] == []
