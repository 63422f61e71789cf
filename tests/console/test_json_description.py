"""The description of the JSON is that of the table, and what is answered is what it says, whatever is asked."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, Final

import anyio
import jsonschema
import pytest

from schemas.alert import KINDS
from tests.console.night import JOB, make_night
from tests.console.serving import serving
from tests.console.test_letting_in import OTHER, by_token
from tests.console.visitor import ORIGIN
from tests.support.ledger import session_on
from trigger.console.api.description import SHAPES
from trigger.console.api.fields import COMPONENTS
from trigger.console.api.table import DESCRIPTION, READS

# Names of what there is, beside any others.
HOOKS: Final = """
from datetime import UTC, datetime
import schemathesis
from hypothesis import strategies as st

near = st.datetimes(datetime(2000, 1, 1), datetime(2060, 1, 1), timezones=st.just(UTC))
names = st.from_regex(r"[a-z][a-z0-9_-]{0,62}", fullmatch=True)
written = st.builds(lambda job, at: f"{job}:{at:%Y-%m-%dT%H:%MZ}", names, near)
schemathesis.openapi.format("date-time", near.map(lambda at: at.isoformat()))
schemathesis.openapi.format("job", st.sampled_from(JOBS) | names)
schemathesis.openapi.format("occurrence", st.sampled_from(OCCURRENCES) | written)
schemathesis.openapi.format("alert", st.sampled_from(["1", "2", "3", "99"]))
"""
EXAMPLES: Final = "4"


def strict(schema: Any) -> Any:
    """Refuse what a record does not name, and find its components beside it."""
    match schema:
        case {"$ref": str(name)}:
            return strict(SHAPES[name.removeprefix(COMPONENTS)])
        case {"properties": _, "required": _}:
            return {name: strict(one) for name, one in schema.items()} | {"additionalProperties": False}
        case dict():
            return {name: strict(one) for name, one in schema.items()}
        case list():
            return [strict(one) for one in schema]
    return schema


def operations() -> list[tuple[str, dict[str, Any]]]:
    return [(path, item["get"]) for path, item in DESCRIPTION["paths"].items()]


def test_every_question_is_described_with_its_answer_and_an_example() -> None:
    names = [operation["operationId"] for _, operation in operations()]
    assert len(names) == len(set(names)) == len(READS) > 15
    for path, operation in operations():
        content = operation["responses"]["200"]["content"]["application/json"]
        jsonschema.Draft202012Validator(strict(content["schema"])).validate(content["example"])
        in_path = [one["name"] for one in operation["parameters"] if one["in"] == "path"]
        assert [part[1:-1] for part in path.split("/") if part.startswith("{")] == in_path
        for one in operation["parameters"]:
            jsonschema.Draft202012Validator(one["schema"]).validate(one["example"])
            assert one["description"]


def test_every_shape_is_used() -> None:
    said = json.dumps(DESCRIPTION)
    assert [name for name in SHAPES if f'"{COMPONENTS}{name}"' not in said] == []


async def test_answers_have_what_is_described_and_nothing_else(database_url: str) -> None:
    async with session_on(database_url) as session:
        failed = await make_night(session)
    asked = {"{job}": JOB, "{occurrence}": failed, "{alert}": "1"}
    async with serving(database_url) as console:
        for path, operation in operations():
            if path.endswith(("openapi.json", "/queues")):
                continue
            full = path
            for name, value in asked.items():
                full = full.replace(name, value)
            answer = await console.get(full)
            assert answer.status == 200, (path, answer.text)
            schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
            jsonschema.Draft202012Validator(strict(schema)).validate(json.loads(answer.text))
            assert ("age" in answer.headers) == ("Age" in operation["responses"]["200"]["headers"]), path
        assert json.loads((await console.get("/api/v1/openapi.json")).text) == json.loads(json.dumps(DESCRIPTION))
        kinds = next(one for one in operations() if one[0].endswith("/alerts"))[1]["parameters"][1]
        assert kinds["schema"]["items"]["enum"] == list(KINDS)


async def probed(address: str, failed: str, folder: Path, *options: str) -> str:
    """Ask what the description allows, and what it forbids; give what was found, '' if all was as described."""
    hooks = HOOKS.replace("JOBS", repr([JOB, "job-1", "job-3"])).replace("OCCURRENCES", repr([failed]))
    (folder / "described_formats.py").write_text(hooks, encoding="utf-8")
    (folder / "description.json").write_text(json.dumps(DESCRIPTION), encoding="utf-8")
    command = [sys.executable, "-m", "schemathesis.cli", "run", "description.json", "--url", address]
    command += ["--max-examples", EXAMPLES, "--generation-deterministic", "--exclude-checks", "ignored_auth"]
    command += ["--no-color", "--warnings", "off", "--workers", "2", *options]
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder), "SCHEMATHESIS_HOOKS": "described_formats"}
    done = await anyio.run_process(command, cwd=folder, env=variables, check=False, stderr=subprocess.STDOUT)
    said = done.stdout.decode()
    assert " generated" in said, said
    return "" if done.returncode == 0 else said


@pytest.mark.timeout(90)
async def test_whatever_is_asked_is_answered_as_described(database_url: str, tmp_path: Path) -> None:
    async with session_on(database_url) as session:
        failed = await make_night(session)
    async with serving(database_url) as console:
        # Without a broker `queues` has 503 to say.
        options = ("--exclude-path", "/api/v1/queues", "--phases", "examples,coverage,fuzzing")
        found = await probed(console.address, failed, tmp_path, *options)
    assert found == "", found


@pytest.mark.timeout(90)
@pytest.mark.parametrize("bearing", [OTHER, ""])
async def test_where_people_sign_in_it_is_as_described_too(database_url: str, tmp_path: Path, bearing: str) -> None:
    async with session_on(database_url) as session:
        failed = await make_night(session)
    options = ["--exclude-path", "/api/v1/queues", "--phases", "examples,fuzzing"]
    options += ["-H", f"Host: {ORIGIN.partition('//')[2]}"]
    options += ["-H", f"Authorization: Bearer {bearing}"] if bearing else []
    async with serving(database_url, console_access=by_token()) as console:
        found = await probed(console.address, failed, tmp_path, *options)
    assert found == "", found
