"""Files and functions stay short, names say what they hold, and every exception to a check gives its reason."""

import re

from tests.architecture.sources import PRODUCT, files, functions, modules, relative

MOST_FILE_LINES = 300
MOST_FUNCTION_LINES = 40
EMPTY_NAMES = re.compile(r"(^|_)(utils?|helpers?|managers?|common|misc|stuff)(_|\.|$)")
EXCEPTION = re.compile(r"#\s*(noqa|type:\s*ignore|pragma|ruff:)")
CODES = r"[A-Z]+\d+(, ?[A-Z]+\d+)*|[a-z-]+(, ?[a-z-]+)*"
REASONED = re.compile(rf"#\s*(noqa: |type: ignore\[)({CODES})\]?\W+\w.{{8,}}")


def test_every_file_is_short() -> None:
    long = {path: count for path, text, _ in modules(*PRODUCT) if (count := len(text.splitlines())) >= MOST_FILE_LINES}
    assert long == {}


def test_every_function_is_short() -> None:
    lengths = {
        f"{path}:{function.name}": (function.end_lineno or 0) - function.lineno + 1
        for path, _, tree in modules(*PRODUCT)
        for function in functions(tree)
    }
    assert {name: count for name, count in lengths.items() if count >= MOST_FUNCTION_LINES} == {}


def test_no_name_is_empty_of_meaning() -> None:
    assert [relative(path) for path in files() if EMPTY_NAMES.search(path.name)] == []


def test_every_exception_to_a_check_names_its_code_and_its_reason() -> None:
    unreasoned = [
        f"{path}:{number}"
        for path, text, _ in modules(*PRODUCT, "examples", "tests")
        for number, line in enumerate(text.splitlines(), start=1)
        if EXCEPTION.search(line) and not REASONED.search(line) and "re.compile" not in line
    ]
    assert unreasoned == []


def test_every_package_has_its_init() -> None:
    folders = {path.parent for path in files() if path.suffix == ".py"}
    assert [relative(folder) for folder in folders if not (folder / "__init__.py").exists()] == []
