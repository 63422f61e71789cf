"""The examples of docs/outside-schedulers.md: what can be run is run, and the rest is read as its platform reads it."""

import configparser
import json
import re
import shlex
import shutil
import subprocess
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

import anyio.to_thread
import pytest
import typer.main
import yaml

import trigger.command
from shared.api_callers import read_callers
from tests.integration.trigger.test_api import JOB, KEY, callers, opened
from tests.support.outside import new_key

ROOT = Path(__file__).resolve().parents[3]
DOCUMENT = (ROOT / "docs" / "outside-schedulers.md").read_text(encoding="utf-8")


@cache
def blocks(language: str) -> list[str]:
    """Give the document's code blocks of a language, in order."""
    return re.findall(rf"```{language}\n(.*?)```", DOCUMENT, re.DOTALL)


def options_of(arguments: list[str]) -> dict[str, Any]:
    """Read a command line of `python -m trigger` as that would, without running it."""
    name, *rest = arguments
    command = typer.main.get_group(trigger.command.application).commands[name]
    with command.make_context(name, list(rest)) as context:
        return context.params


@pytest.mark.skipif(not shutil.which("curl") or not shutil.which("openssl"), reason="needs curl and openssl")
async def test_the_shells_call_is_signed_as_it_should_be(
    tmp_path: Path, database_url: str, broker_url: str, prefix: str
) -> None:
    (script,) = blocks("sh")
    assert f"/v1/jobs/{JOB}/occurrences" in script
    async with opened(callers(), tmp_path, database_url, broker_url, prefix) as here:
        variables = {"MATINS_KEY": KEY, "MATINS_ENDPOINT": f"http://127.0.0.1:{here.api.port}", "PATH": "/usr/bin:/bin"}

        def call(**changes: str) -> subprocess.CompletedProcess[str]:
            shell = shutil.which("sh") or "sh"
            return subprocess.run(
                [shell, "-eu", "-c", script], env=variables | changes, capture_output=True, text=True, check=False
            )

        first = await anyio.to_thread.run_sync(call)
        assert (first.returncode, json.loads(first.stdout)["deduplicated"]) == (0, False), first.stderr
        again = await anyio.to_thread.run_sync(call)
        assert json.loads(again.stdout)["deduplicated"] is True
        forged = await anyio.to_thread.run_sync(lambda: call(MATINS_KEY=new_key()))
        assert (forged.returncode, json.loads(forged.stdout)["status"]) == (22, 401)


def test_a_key_is_made_as_the_document_says() -> None:
    (command,) = re.findall(r"`(echo \"whsec_[^`]+)`", DOCUMENT)
    shell = shutil.which("sh")
    if shell is None or shutil.which("openssl") is None:
        pytest.skip("needs openssl")
    made = subprocess.run([shell, "-c", command], capture_output=True, text=True, check=True).stdout.strip()
    assert len(read_callers(f'[callers.x]\njobs = ["x"]\nkeys = ["{made}"]')) == 1


def test_the_callers_of_the_document_can_be_read() -> None:
    described = [block.replace("whsec_REPLACE", new_key()) for block in blocks("toml")]
    assert len(described) == 2
    assert {caller.name for text in described for caller in read_callers(text)} == {
        "billing-cron",
        "cloud-scheduler",
        "invoice-cronjob",
    }


def cronjob() -> Any:
    found = [one for block in blocks("yaml") for one in yaml.safe_load_all(block) if one.get("kind") == "CronJob"]
    assert len(found) == 1
    return found[0]


def test_the_cronjob_is_one_and_fires_as_it_should() -> None:
    described = cronjob()
    assert described["apiVersion"] == "batch/v1"
    spec = described["spec"]
    assert set(spec) == {
        "schedule",
        "timeZone",
        "concurrencyPolicy",
        "startingDeadlineSeconds",
        "successfulJobsHistoryLimit",
        "failedJobsHistoryLimit",
        "jobTemplate",
    }
    assert spec["concurrencyPolicy"] in {"Allow", "Forbid", "Replace"}
    assert set(spec["jobTemplate"]["spec"]) == {"backoffLimit", "activeDeadlineSeconds", "template"}
    pod = spec["jobTemplate"]["spec"]["template"]["spec"]
    assert pod["restartPolicy"] == "Never"
    (container,) = pod["containers"]
    options = options_of(container["args"])
    assert (options["job"], options["at"], options["deduplicate"], options["wait"]) == (JOB, "due", True, False)
    assert {one["name"] for one in container["volumeMounts"]} == {one["name"] for one in pod["volumes"]}


def test_a_pod_can_tell_its_instant_from_the_name_of_its_job() -> None:
    (container,) = [
        one["containers"][0] for block in blocks("yaml") for one in yaml.safe_load_all(block) if "containers" in one
    ]
    assert container["command"] == ["sh", "-c"]
    (text,) = container["args"]
    instant = datetime(2026, 8, 25, 2, tzinfo=UTC)
    shell = shutil.which("sh")
    assert shell is not None
    expanded = subprocess.run(
        [shell, "-c", text.replace("exec env --chdir=/app", "printf '%s\\n'")],
        env={"JOB_NAME": f"invoice-run-{int(instant.timestamp()) // 60}", "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split("\n")
    assert expanded[:3] == ["python", "-m", "trigger"]
    assert options_of([one for one in expanded[3:] if one])["at"] == "2026-08-25T02:00:00Z"


def test_the_units_are_read_and_fire_as_they_should() -> None:
    timer, service = (configparser.ConfigParser(interpolation=None, strict=True) for _ in range(2))
    for parser in (timer, service):
        parser.optionxform = str  # type: ignore[assignment, method-assign] # systemd's names have capitals
    timer.read_string(blocks("ini")[0])
    service.read_string(blocks("ini")[1])
    assert timer["Timer"]["Persistent"] == "true"
    assert service["Service"]["RestartPreventExitStatus"] == "2"
    arguments = shlex.split(service["Service"]["ExecStart"])
    assert arguments[1:3] == ["-m", "trigger"]
    options = options_of(arguments[3:])
    assert (options["at"], options["deduplicate"], options["wait"]) == ("due", True, False)


def test_the_schedules_of_the_clouds_are_read() -> None:
    (event,) = (json.loads(block) for block in blocks("json"))
    override = json.loads(event["Target"]["Input"])["containerOverrides"][0]
    arguments = [one.replace("<aws.scheduler.scheduled-time>", "2026-08-25T02:00:00Z") for one in override["command"]]
    assert options_of(arguments)["deduplicate"] is True
    google = next(block for block in blocks("console") if block.startswith("gcloud"))
    audience = re.search(r"--oidc-token-audience=(\S+)", google)
    email = re.search(r"--oidc-service-account-email=(\S+)", google)
    assert audience is not None
    assert email is not None
    (cloud,) = (one for one in read_callers(blocks("toml")[0].replace("whsec_REPLACE", new_key())) if one.token)
    assert cloud.token is not None
    assert (cloud.token.audience, cloud.token.claims["email"]) == (audience[1], email[1])
