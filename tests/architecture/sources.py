"""The repository's own files, as text and as syntax trees."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PRODUCT = ("schemas", "shared", "trigger", "worker")
GENERATED = {
    ".git",
    ".hypothesis",
    ".import_linter_cache",
    ".mypy_cache",
    ".pytest_cache",
    ".ruff_cache",
    ".venv",
    "__pycache__",
}


def files(folder: Path = ROOT) -> Iterator[Path]:
    """Give every file that a person wrote, or a lock file, in order."""
    for entry in sorted(folder.iterdir()):
        if entry.name in GENERATED:
            continue
        if entry.is_dir():
            yield from files(entry)
        elif not (entry.name == ".env" or entry.suffix == ".pyc"):
            yield entry


def texts() -> Iterator[tuple[str, str]]:
    """Give path, from the root, and text of every file that holds text."""
    for path in files():
        try:
            yield relative(path), path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue


def modules(*packages: str) -> Iterator[tuple[str, str, ast.Module]]:
    """Give path, text and syntax tree of every module of the packages."""
    for package in packages:
        for path in files(ROOT / package):
            if path.suffix == ".py":
                text = path.read_text(encoding="utf-8")
                yield relative(path), text, ast.parse(text)


def relative(path: Path) -> str:
    """Give the path from the root, with slashes."""
    return path.relative_to(ROOT).as_posix()


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Give every function and method."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def names_used(tree: ast.Module) -> set[str]:
    """Give the full dotted name of everything that a module imports or reaches through an import."""
    origins: dict[str, str] = {}
    used: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                used.add(alias.name)
                origins[alias.asname or alias.name.partition(".")[0]] = (
                    alias.name if alias.asname else alias.name.partition(".")[0]
                )
        elif isinstance(node, ast.ImportFrom):
            for alias in node.names:
                origins[alias.asname or alias.name] = f"{node.module}.{alias.name}"
                used.add(f"{node.module}.{alias.name}")
    return used | {reached for node in ast.walk(tree) if (reached := dotted(node, origins))}


def dotted(node: ast.AST, origins: dict[str, str]) -> str | None:
    """Give the full name of an attribute chain that starts at an imported name."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if parts and isinstance(node, ast.Name) and node.id in origins:
        return ".".join([origins[node.id], *reversed(parts)])
    return None
