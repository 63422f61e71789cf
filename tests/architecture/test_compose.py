"""The deployment in compose.yaml: who waits for whom, who may do what, and what ends in time."""

import importlib
import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
import yaml

import examples.billing.jobs
from shared.console_access import read_access
from shared.job import Job
from shared.role_names import role_names
from shared.settings import Settings, load_settings, setting_rows
from tests.architecture.sources import ROOT
from tests.architecture.test_dockerfile import environment
from trigger.database_roles import creation, plan_for

SERVICES = ("trigger", "worker")
ONE_SHOT = ("migrate", "data")
OURS = (*SERVICES, *ONE_SHOT, "payments", "cli")
SERVERS = ("postgres", "rabbitmq")
GATEWAY = ("gateway",)
OBSERVERS = ("collector", "jaeger", "prometheus", "grafana")
LAST_RESORT_SECONDS = 5


@cache
def composition() -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((ROOT / "compose.yaml").read_text(encoding="utf-8"))
    return loaded


def service(name: str) -> dict[str, Any]:
    found: dict[str, Any] = composition()["services"][name]
    return found


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def seconds(text: str) -> int:
    match = re.fullmatch(r"(\d+)s", text)
    assert match is not None, text
    return int(match[1])


def mounted(name: str) -> dict[str, str]:
    """Give the name of each secret that a service can read, by its path in the container."""
    secrets = [{"source": one} if isinstance(one, str) else one for one in service(name).get("secrets", [])]
    return {one.get("target", f"/run/secrets/{one['source']}"): one["source"] for one in secrets}


def default(setting: str) -> str:
    return next(value for variable, value, _ in setting_rows() if variable == setting)


def test_the_services_are_the_ones_that_these_rules_know() -> None:
    assert "version" not in composition()
    assert set(composition()["services"]) == {*OURS, *SERVERS, *GATEWAY, *OBSERVERS}
    assert {name for name in composition()["services"] if "profiles" in service(name)} == {"cli", *OBSERVERS}


def test_every_image_from_elsewhere_is_of_a_fixed_release() -> None:
    for name in (*SERVERS, *GATEWAY, *OBSERVERS):
        assert re.search(r":v?\d[\w.-]*$", service(name)["image"]), name
        assert "build" not in service(name)


@pytest.mark.parametrize("name", OURS)
def test_a_process_of_ours_has_no_rights_and_nowhere_to_write(name: str) -> None:
    described = service(name)
    assert described["read_only"] is True
    assert described["init"] is True
    assert described["tmpfs"] == ["/tmp"]  # noqa: S108 - the path in the container, which is its own
    assert described["cap_drop"] == ["ALL"]
    assert described["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "user", "ports", "container_name", "volumes"} & described.keys()
    assert described["build"]["target"] == described["image"].removeprefix("matins-")


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_three_replicas_and_any_number_can_be_asked_for(name: str) -> None:
    assert service(name)["deploy"] == {"replicas": 3}
    assert not {"container_name", "hostname", "ports"} & service(name).keys()


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_has_time_to_drain(name: str) -> None:
    grace = load_settings({}, need=frozenset()).grace_period.total_seconds()
    assert seconds(service(name)["stop_grace_period"]) >= grace + LAST_RESORT_SECONDS
    assert "MATINS_GRACE_PERIOD" not in service(name)["environment"]


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_starts_after_migrate_and_comes_back(name: str) -> None:
    assert service(name)["depends_on"]["migrate"] == {"condition": "service_completed_successfully"}
    assert service(name)["restart"] == "unless-stopped"


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_healthy_when_it_is_ready(name: str) -> None:
    port = environment(name)["MATINS_HEALTH_ADDRESS"].rpartition(":")[2]
    assert f"http://127.0.0.1:{port}/readyz" in service(name)["healthcheck"]["test"][-1]


@pytest.mark.parametrize("name", [*SERVERS, *SERVICES, *GATEWAY, "payments", "prometheus", "grafana"])
def test_what_stays_up_is_looked_at_with_patience(name: str) -> None:
    check = service(name)["healthcheck"]
    assert check["test"][0] in {"CMD", "CMD-SHELL"}
    assert seconds(check["timeout"]) <= seconds(check["interval"])
    assert seconds(check["start_period"]) >= 30


@pytest.mark.parametrize("name", ONE_SHOT)
def test_a_one_shot_waits_for_its_servers_and_runs_once(name: str) -> None:
    assert service(name)["restart"] == "no"
    assert service(name)["depends_on"]["postgres"] == {"condition": "service_healthy"}
    assert "healthcheck" not in service(name)


def test_migrate_waits_for_the_broker_as_well() -> None:
    assert service("migrate")["depends_on"]["rabbitmq"] == {"condition": "service_healthy"}


def test_the_brokers_node_keeps_its_name_and_its_data() -> None:
    assert service("rabbitmq")["hostname"] == "rabbitmq"
    assert any(volume.startswith("rabbitmq:") for volume in service("rabbitmq")["volumes"])
    assert any(volume.startswith("postgres:") for volume in service("postgres")["volumes"])
    assert set(composition()["volumes"]) == {*SERVERS, "prometheus"}


def test_only_the_loopback_interface_is_published() -> None:
    published = [port for name in composition()["services"] for port in service(name).get("ports", [])]
    assert len(published) == 6
    assert all(re.fullmatch(r"127\.0\.0\.1:\$\{[A-Z_]+_PORT:-\d+\}:\d+", port) for port in published)
    assert len({re.sub(r".*:-(\d+).*", r"\1", port) for port in published}) == len(published)


def test_every_log_is_bounded() -> None:
    for name in composition()["services"]:
        assert service(name)["logging"]["options"].keys() == {"max-size", "max-file"}, name


def test_every_setting_exists_and_no_secret_lies_in_the_environment() -> None:
    variables = {variable for variable, _, _ in setting_rows()}
    secrets = {f"MATINS_{one.name.upper()}" for one in fields(Settings) if one.metadata.get("secret")}
    assert "MATINS_DATABASE_URL" in secrets
    for name in OURS:
        for variable, value in service(name).get("environment", {}).items():
            assert variable.removesuffix("_FILE") in variables or variable.startswith(
                ("MATINS_EXAMPLE_", "OTEL_", "USER")
            )
            assert not re.search(r"://[^/]*@", str(value))
            assert not variable.endswith("_FILE") or value in mounted(name), f"{name}: {variable}"
            assert variable not in secrets, f"{name}: {variable}"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of secrets, as the script makes it."""
    folder = tmp_path_factory.mktemp("deploy")
    shutil.copy(ROOT / "deploy/secrets.sh", folder)
    shell = shutil.which("sh")
    assert shell is not None
    subprocess.run([shell, folder / "secrets.sh"], check=True, capture_output=True)
    return folder / "secrets"


def test_nobody_reads_the_owners_addresses_but_who_makes_tables_and_queues() -> None:
    owners = {"database_owner_url", "broker_owner_url"}
    readers = {name: set(mounted(name).values()) & owners for name in composition()["services"]}
    assert {name: read for name, read in readers.items() if read} == {"migrate": owners, "data": {"database_owner_url"}}
    assert set(mounted("migrate").values()) == owners


def test_every_secret_is_a_file_that_the_script_makes_and_git_ignores(made: Path) -> None:
    used = {one for name in composition()["services"] for one in mounted(name).values()}
    assert used == set(composition()["secrets"])
    for secret in composition()["secrets"].values():
        folder, _, file = secret["file"].rpartition("/")
        assert folder == "deploy/secrets"
        assert (made / file).read_text().strip()
    assert read("deploy/secrets/.gitignore").splitlines()[1:] == ["*", "!.gitignore"]


def test_every_file_that_is_mounted_exists() -> None:
    bound = [one for name in composition()["services"] for one in service(name).get("volumes", []) if one[0] == "."]
    assert len(bound) == 11
    assert all(one.endswith(":ro") and (ROOT / one.split(":")[0]).is_file() for one in bound)


@pytest.mark.parametrize(
    ("name", "user"), [("migrate", "owner"), ("trigger", "trigger"), ("worker", "worker"), ("cli", "operator")]
)
def test_everybody_comes_to_both_servers_as_somebody_of_their_own(name: str, user: str, made: Path) -> None:
    for server in ("database", "broker"):
        (url,) = {one for one in mounted(name).values() if one.startswith(f"{server}_")}
        assert service(name)["environment"][f"MATINS_{server.upper()}_URL_FILE"] == f"/run/secrets/{url}"
        login = "matins" if (server, user) == ("database", "owner") else user
        password = (made / f"{server}_{user}_password").read_text()
        assert f"://{login}:{password}@" in (made / url).read_text()


def test_the_brokers_users_are_those_that_have_rights(made: Path) -> None:
    users = {one["name"]: one for one in json.loads((made / "broker_users.json").read_text())["users"]}
    assert set(users) == {one["user"] for one in json.loads(read("deploy/rabbitmq/rights.json"))["permissions"]}
    assert {name: one["tags"] for name, one in users.items() if one["tags"]} == {"operator": ["monitoring"]}
    assert all(one["password"] == (made / f"broker_{name}_password").read_text() for name, one in users.items())


@pytest.fixture
def deployed_jobs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Job]]:
    """The example's jobs as they are deployed."""
    with monkeypatch.context() as deployed:
        deployed.setenv("MATINS_EXAMPLE_ROLES", service("migrate")["environment"]["MATINS_EXAMPLE_ROLES"])
        yield importlib.reload(examples.billing.jobs).jobs
    importlib.reload(examples.billing.jobs)


def test_the_database_has_every_role_that_migrate_would_make(deployed_jobs: list[Job]) -> None:
    script = read("deploy/postgres/roles.sql")
    plan = plan_for(role_names(""), {job.name: job for job in deployed_jobs})
    assert plan.job_roles == ("job_invoice", "job_usage")
    for statement in creation(plan).values():
        assert f"{statement.replace(chr(34), '')};" in script
    granted = re.findall(r"^grant (.+) to (.+) with inherit false;$", script, re.MULTILINE)
    taken = {(role, member) for many, to in granted for role in many.split(", ") for member in to.split(", ")}
    assert set(plan.taken) <= taken
    passwords = re.findall(r"cat /run/secrets/(\w+)`", script)
    assert set(passwords) <= set(mounted("postgres").values())
    assert "grant connect on database matins to trigger, worker, operator;" in script


def test_the_brokers_files_are_read_from_where_they_are_mounted() -> None:
    folder = re.search(r"^definitions\.local\.path = (\S+)$", read("deploy/rabbitmq/matins.conf"), re.MULTILINE)
    assert folder is not None
    assert f"{folder[1]}/10-users.json" in mounted("rabbitmq")
    assert any(f"{folder[1]}/20-rights.json:ro" in volume for volume in service("rabbitmq")["volumes"])


def test_the_database_has_connections_for_more_processes_than_are_started() -> None:
    most = int(service("postgres")["command"][-1].removeprefix("max_connections="))
    replicas = sum(service(name)["deploy"]["replicas"] for name in SERVICES)
    assert most >= 2 * replicas * int(default("MATINS_POOL_SIZE"))


def test_nothing_is_sent_to_a_collector_unless_one_is_named() -> None:
    for name in SERVICES:
        variables = {key: value for key, value in service(name)["environment"].items() if key.startswith("OTEL_")}
        assert "OTEL_EXPORTER_OTLP_ENDPOINT" in variables
        # Docker's own command line sets it, to describe itself.
        assert "OTEL_RESOURCE_ATTRIBUTES" not in variables
        assert set(variables.values()) == {None}


def test_the_console_believes_the_gateway_and_nobody_else(made: Path) -> None:
    access = read_access((made / "console_access.toml").read_text())
    assert access is not None
    assert access.proxy is not None
    address = service("gateway")["networks"]["default"]["ipv4_address"]
    assert [str(network) for network in access.proxy.trusted] == [f"{address}/32"]
    (network,) = composition()["networks"]["default"]["ipam"]["config"]
    assert ip_address(address) in ip_network(network["subnet"])
    assert ip_address(address) not in ip_network(network["ip_range"]), "no other container may be given it"
    template = read("deploy/gateway/gateway.conf.template")
    assert f"proxy_set_header {access.proxy.name_header} $person".lower() in template.lower()
    person, _, password = (made / "console_people").read_text().strip().partition(":")
    assert access.proxy.grants.role_of([person]) == "operate"
    assert password == "{PLAIN}" + (made / "console_password").read_text()
    assert access.origin == "http://127.0.0.1:8088"
    assert service("trigger")["environment"]["MATINS_CONSOLE_ADDRESS"].endswith(
        f":{service('gateway')['environment']['GATEWAY_CONSOLE_PORT']}"
    )
