"""The images: small, without rights, reproducible, and each with its own packages alone."""

import json
import re
from functools import cache

import pytest

from tests.architecture.sources import PRODUCT, ROOT

OTHER = {"trigger": "worker", "worker": "trigger"}
# What a process reads beside its packages: the console shows alerts with the runbook.
BESIDE: dict[str, set[str]] = {"trigger": {"docs"}, "worker": set()}


@cache
def instructions() -> tuple[tuple[str, str, str], ...]:
    """Give stage, instruction and the rest of it, in order, comments left out and continued lines joined."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / "Dockerfile").read_text(encoding="utf-8"), flags=re.MULTILINE)
    stage, found = "", []
    for line in re.sub(r"\\\n\s*", "", text).splitlines():
        word, _, rest = line.partition(" ")
        if word == "FROM":
            stage = rest.partition(" AS ")[2]
        if word:
            found.append((stage, word, rest))
    return tuple(found)


def parent(stage: str) -> str:
    return next(
        rest.partition(" AS ")[0]
        for _, word, rest in instructions()
        if word == "FROM" and rest.endswith(f" AS {stage}")
    )


def chain(stage: str) -> list[str]:
    """Give the stages that a stage is made of, the outside image first."""
    stages = {one for one, _, _ in instructions()}
    return [*(chain(parent(stage)) if parent(stage) in stages else [parent(stage)]), stage]


def said(stage: str, word: str) -> list[str]:
    """Give what an instruction says, in every stage that the image is made of."""
    return [rest for part in chain(stage) for one, name, rest in instructions() if (one, name) == (part, word)]


def environment(stage: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for line in said(stage, "ENV") for pair in line.split())


def test_every_image_stands_on_one_release_of_python() -> None:
    assert {chain(stage)[0] for stage, _, _ in instructions() if stage} == {"python:3.13-slim"}


def test_no_frontend_or_image_is_fetched_beside_the_base() -> None:
    text = (ROOT / "Dockerfile").read_text(encoding="utf-8")
    sources = set(re.findall(r"--from=(\S+)", text))
    assert not text.startswith("# syntax")
    assert sources <= {stage for stage, _, _ in instructions()}


def test_dependencies_are_the_locked_wheels_and_no_others() -> None:
    installs = [rest for _, word, rest in instructions() if word == "RUN" and "pip install" in rest]
    assert len(installs) == 1
    assert "--require-hashes" in installs[0]
    assert "--only-binary :all:" in installs[0]
    assert re.search(r"COPY requirements/runtime\.txt", (ROOT / "Dockerfile").read_text(encoding="utf-8"))
    assert not re.search(r"\b(apt-get|apk|curl|wget)\b", (ROOT / "Dockerfile").read_text(encoding="utf-8"))


@pytest.mark.parametrize("stage", OTHER)
def test_a_process_has_its_own_packages_alone(stage: str) -> None:
    copied = {line.split()[-1].removeprefix("/app/") for line in said(stage, "COPY") if "/app/" in line}
    assert copied - {""} == (set(PRODUCT) - {OTHER[stage]}) | BESIDE[stage]
    assert {line.split()[0] for line in said(stage, "COPY")} == {"--from=dependencies", "--from=sources"}


@pytest.mark.parametrize("stage", OTHER)
def test_the_example_adds_its_package_and_nothing_else(stage: str) -> None:
    assert parent(f"example-{stage}") == stage
    own = [(word, rest) for one, word, rest in instructions() if one == f"example-{stage}" and word != "FROM"]
    assert own == [("COPY", "--from=sources /sources/examples /app/examples")]


@pytest.mark.parametrize("stage", OTHER)
def test_a_process_is_started_where_our_packages_come_first(stage: str) -> None:
    assert json.loads(said(stage, "ENTRYPOINT")[-1]) == ["env", "--chdir=/app", "python", "-m", stage]
    assert json.loads(said(stage, "CMD")[-1]) == ["serve"]
    assert said(stage, "WORKDIR")[-1] == "/app"
    assert not {"PYTHONPATH", "PYTHONSAFEPATH"} & environment(stage).keys()


@pytest.mark.parametrize("stage", OTHER)
def test_a_process_runs_without_rights_and_stops_when_told(stage: str) -> None:
    user = said(stage, "USER")[-1]
    assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", user)
    assert f"--uid {user.partition(':')[0]} " in " ".join(said(stage, "RUN"))
    assert said(stage, "STOPSIGNAL") == ["SIGTERM"]
    assert not any("--chown" in line for line in said(stage, "COPY"))


@pytest.mark.parametrize("stage", OTHER)
def test_a_process_writes_its_lines_at_once_and_no_files(stage: str) -> None:
    assert environment(stage)["PYTHONUNBUFFERED"] == environment(stage)["PYTHONDONTWRITEBYTECODE"] == "1"


def test_no_secret_can_get_into_an_image() -> None:
    words = {word for _, word, _ in instructions()}
    assert "ARG" not in words
    assert "ADD" not in words
    assert not any(re.search(r"PASSWORD|SECRET|TOKEN|_URL", name) for name in environment("worker"))


def test_the_build_is_given_what_the_images_take_and_nothing_else() -> None:
    lines = [line for line in (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines() if line[:1] != "#"]
    taken = {
        path.rstrip("/")
        for _, word, rest in instructions()
        if word == "COPY" and "--from" not in rest
        for path in rest.split()[:-1]
    }
    assert lines[0] == "*"
    assert {line[1:] for line in lines if line.startswith("!")} == taken
    assert all((ROOT / path).exists() for path in taken)
