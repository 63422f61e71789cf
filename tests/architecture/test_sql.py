"""One statement per file, beside the step that runs it, named as that step, with a head that says what it decides."""

import ast
import re
from functools import cache
from pathlib import Path

from tests.architecture.sources import PRODUCT, ROOT, files, modules, relative

STATEMENTS = [path for package in PRODUCT for path in files(ROOT / package) if path.parent.name == "sql"]
NOT_CODE = re.compile(
    r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|(?P<quote>\$\w*\$).*?(?P=quote)", re.DOTALL
)


def code(text: str) -> str:
    """Give the statement without comments, strings and quoted names."""
    return NOT_CODE.sub(" ", text)


def package(path: Path) -> str:
    """Give the package folder that holds the file's folder."""
    return relative(path.parents[1])


@cache
def constants(folder: str) -> set[str]:
    return {
        target.id
        for _, _, tree in modules(folder)
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        for target in node.targets
        if isinstance(target, ast.Name)
    }


@cache
def strings(folder: str) -> set[str]:
    return {
        node.value
        for _, _, tree in modules(folder)
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def test_the_reading_of_statements_itself() -> None:
    assert code("-- a; b\nselect ';', \";\" /* ; */ from $$;$$ x;").count(";") == 1


def test_every_file_holds_exactly_one_statement() -> None:
    counts = {
        relative(path): len([part for part in code(path.read_text(encoding="utf-8")).split(";") if part.strip()])
        for path in STATEMENTS
    }
    assert {path: count for path, count in counts.items() if count != 1 or not path.endswith(".sql")} == {}


def test_every_file_begins_with_what_it_decides() -> None:
    begins = re.compile(r"-- \w.{15,}")
    assert [relative(path) for path in STATEMENTS if not begins.match(path.read_text(encoding="utf-8"))] == []


def test_every_file_is_loaded_into_the_constant_of_its_name() -> None:
    assert [relative(path) for path in STATEMENTS if path.stem.upper() not in constants(package(path))] == []


def test_every_file_is_loaded() -> None:
    assert [relative(path) for path in STATEMENTS if not strings(package(path)) & {path.stem, path.name}] == []


def test_migrations_are_numbered_without_gap_or_repetition() -> None:
    numbers = [int(path.name[:4]) for path in files(ROOT / "schemas") if path.parent.name == "migrations"]
    assert sorted(numbers) == list(range(1, len(numbers) + 1))
