"""The description of the JSON is that of the table, and what is answered is what it says, whatever is asked."""

import json
import os
import re
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
from tests.console.test_letting_in import OTHER, TOKEN, by_token
from tests.console.visitor import ORIGIN
from tests.support.ledger import session_on
from trigger.console.acting import ACTS
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
# What cannot be done now is answered with 409 and 422, however well it is said.
SETTINGS: Final = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", "401", "403", "404", "409", "422"]
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
    return [(path, one) for path, item in DESCRIPTION["paths"].items() for one in item.values()]


def questions() -> list[tuple[str, dict[str, Any]]]:
    return [(path, item["get"]) for path, item in DESCRIPTION["paths"].items() if "get" in item]


def test_every_question_is_described_with_its_answer_and_an_example() -> None:
    names = [operation["operationId"] for _, operation in operations()]
    assert len(names) == len(set(names)) == len(READS) + len(ACTS) > 30
    for path, operation in operations():
        content = operation["responses"]["200"]["content"]["application/json"]
        jsonschema.Draft202012Validator(strict(content["schema"])).validate(content["example"])
        in_path = [one["name"] for one in operation["parameters"] if one["in"] == "path"]
        assert [part[1:-1] for part in path.split("/") if part.startswith("{")] == in_path
        for one in operation["parameters"]:
            jsonschema.Draft202012Validator(one["schema"]).validate(one["example"])
            assert one["description"]
        for body in operation.get("requestBody", {}).get("content", {}).values():
            jsonschema.Draft202012Validator(body["schema"]).validate(body["example"])


def test_every_shape_is_used_and_every_one_that_is_named_is_there() -> None:
    said = json.dumps(DESCRIPTION)
    assert [name for name in SHAPES if f'"{COMPONENTS}{name}"' not in said] == []
    for place in set(re.findall(r'"#/([^"]+)"', said)):
        found: Any = DESCRIPTION
        for part in place.split("/"):
            found = found[part]


async def test_answers_have_what_is_described_and_nothing_else(database_url: str) -> None:
    async with session_on(database_url) as session:
        failed = await make_night(session)
    asked = {"{job}": JOB, "{occurrence}": failed, "{alert}": "1"}
    async with serving(database_url) as console:
        for path, operation in questions():
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
        kinds = next(one for one in questions() if one[0].endswith("/alerts"))[1]["parameters"][1]
        assert kinds["schema"]["items"]["enum"] == list(KINDS)


async def probed(address: str, failed: str, folder: Path, *options: str) -> str:
    """Ask what the description allows, and what it forbids; give what was found, '' if all was as described."""
    hooks = HOOKS.replace("JOBS", repr([JOB, "job-1", "job-3"])).replace("OCCURRENCES", repr([failed]))
    (folder / "described_formats.py").write_text(hooks, encoding="utf-8")
    (folder / "schemathesis.toml").write_text(SETTINGS, encoding="utf-8")
    (folder / "description.json").write_text(json.dumps(DESCRIPTION), encoding="utf-8")
    command = [sys.executable, "-m", "schemathesis.cli", "run", "description.json", "--url", address]
    command += ["--max-examples", EXAMPLES, "--generation-deterministic", "--exclude-checks", "ignored_auth"]
    command += ["--no-color", "--warnings", "off", *options]
    variables = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder), "SCHEMATHESIS_HOOKS": "described_formats"}
    done = await anyio.run_process(command, cwd=folder, env=variables, check=False, stderr=subprocess.STDOUT)
    said = done.stdout.decode()
    assert " generated" in said, said
    return "" if done.returncode == 0 else said


@pytest.mark.timeout(90)
@pytest.mark.parametrize(
    ("who", "phases"),
    [
        ("a program that operates", "examples,coverage,fuzzing"),
        ("a program that looks", "examples"),
        ("nobody", "examples"),
        ("whoever is on the loopback", "examples"),
    ],
)
async def test_whatever_is_asked_is_answered_as_described(
    database_url: str, tmp_path: Path, who: str, phases: str
) -> None:
    async with session_on(database_url) as session:
        failed = await make_night(session)
    # Without a broker `queues` has 503 to say.
    options = ["--exclude-path", "/api/v1/queues", "--phases", phases]
    bearing = {"a program that operates": TOKEN, "a program that looks": OTHER}.get(who)
    signs_in = who != "whoever is on the loopback"
    options += ["-H", f"Host: {ORIGIN.partition('//')[2]}"] if signs_in else []
    options += ["-H", f"Authorization: Bearer {bearing}"] if bearing else []
    async with serving(database_url, **({"console_access": by_token()} if signs_in else {})) as console:
        found = await probed(console.address, failed, tmp_path, *options)
    assert found == "", found
