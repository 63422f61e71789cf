"""Loading the statements: one SQL statement per file, in the folder `sql` beside the step that runs it."""

from importlib import resources


def statement(package: str, name: str) -> str:
    """Give the text of `<package>/sql/<name>.sql`. Raises FileNotFoundError when there is none."""
    return resources.files(package).joinpath("sql", f"{name}.sql").read_text(encoding="utf-8")
