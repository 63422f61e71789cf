"""What watches in compose.yaml: what it may do, that each part finds the others, and that nobody rules it unasked."""

import re
from typing import Any
from urllib.parse import urlsplit

import pytest
import yaml

from shared.settings import load_settings
from tests.architecture.test_compose import OBSERVERS, composition, mounted, read, service

PROMETHEUS = "deploy/prometheus/prometheus.yml"
GRAFANA = "deploy/observe/grafana"


def loaded(path: str) -> dict[str, Any]:
    """Give a file of YAML as it is read."""
    read_in: dict[str, Any] = yaml.safe_load(read(path))
    return read_in


def mounts(name: str) -> dict[str, str]:
    """Give the file of ours behind each path in a service's container."""
    bound = [one.split(":") for one in service(name).get("volumes", []) if one.startswith("./")]
    assert all(len(one) == 3 and one[2] == "ro" for one in bound)
    return {place: file.removeprefix("./") for file, place, _ in bound}


def scraped() -> dict[str, dict[str, Any]]:
    """Give what Prometheus fetches, by name."""
    return {one["job_name"]: one for one in loaded(PROMETHEUS)["scrape_configs"]}


@pytest.mark.parametrize("name", OBSERVERS)
def test_an_observer_has_no_rights_and_starts_when_it_is_asked_for(name: str) -> None:
    described = service(name)
    assert described["profiles"] == ["observe"]
    assert described["read_only"] is True
    assert described["cap_drop"] == ["ALL"]
    assert described["security_opt"] == ["no-new-privileges:true"]
    assert not {"privileged", "cap_add", "user", "build"} & described.keys()
    assert set(mounted(name).values()) == ({"grafana_password"} if name == "grafana" else set())


def test_the_collectors_pipelines_are_made_of_parts_that_are_described() -> None:
    described = loaded("deploy/observe/collector.yaml")
    used: dict[str, set[str]] = {}
    for pipeline in described["service"]["pipelines"].values():
        for kind, names in pipeline.items():
            used.setdefault(kind, set()).update(names)
    assert used == {kind: set(parts) for kind, parts in described.items() if kind != "service"}
    assert described["receivers"]["otlp"]["protocols"].keys() == {"http"}
    assert described["exporters"]["otlp_grpc/jaeger"]["endpoint"].partition(":")[0] in OBSERVERS


def test_prometheus_fetches_from_what_there_is_and_has_the_rules() -> None:
    targets = {name: one["static_configs"][0]["targets"] for name, one in scraped().items()}
    port = loaded("deploy/observe/collector.yaml")["exporters"]["prometheus"]["endpoint"].rpartition(":")[2]
    assert targets == {
        "matins": [f"collector:{port}"],
        "rabbitmq": ["rabbitmq:15692"],
        "rabbitmq-queues": ["rabbitmq:15692"],
        "prometheus": ["localhost:9090"],
    }
    assert {target.partition(":")[0] for (target,) in targets.values()} - {"localhost"} <= set(
        composition()["services"]
    )
    # Else `job` and `instance` would be those of the collector, for every process.
    assert scraped()["matins"]["honor_labels"] is True
    (rules,) = loaded(PROMETHEUS)["rule_files"]
    assert mounts("prometheus") == {
        "/etc/prometheus/prometheus.yml": PROMETHEUS,
        f"/etc/prometheus/{rules}": f"deploy/prometheus/{rules}",
    }
    assert "--config.file=/etc/prometheus/prometheus.yml" in service("prometheus")["command"]


def test_the_broker_tells_of_its_queues_and_of_no_other_environments() -> None:
    assert read("deploy/rabbitmq/enabled_plugins") == "[rabbitmq_management,rabbitmq_prometheus].\n"
    assert mounts("rabbitmq")["/etc/rabbitmq/enabled_plugins"] == "deploy/rabbitmq/enabled_plugins"
    assert scraped()["rabbitmq-queues"]["params"]["vhost"] == ["matins"]
    assert not any(port.endswith(":15692") for port in service("rabbitmq")["ports"])


def test_nobody_is_an_administrator_of_grafana_without_the_password() -> None:
    settings = service("grafana")["environment"]
    assert mounted("grafana")[settings["GF_SECURITY_ADMIN_PASSWORD__FILE"]] == "grafana_password"
    assert settings["GF_AUTH_ANONYMOUS_ORG_ROLE"] == "Viewer"
    assert settings["GF_USERS_ALLOW_SIGN_UP"] == "false"
    # Who is not logged in may look, since only this machine may come.
    assert [port.split(":")[0] for port in service("grafana")["ports"]] == ["127.0.0.1"]


def test_grafana_finds_its_data_and_its_dashboard() -> None:
    sources = loaded(f"{GRAFANA}/datasources.yaml")["datasources"]
    assert {one["type"] for one in sources} == {"prometheus", "jaeger"}
    for source in sources:
        address = urlsplit(source["url"])
        (published,) = service(str(address.hostname))["ports"]
        assert published.endswith(f":{address.port}")
        assert source["editable"] is False
    (provider,) = loaded(f"{GRAFANA}/dashboards.yaml")["providers"]
    assert provider["allowUiUpdates"] is False
    home = f"{provider['options']['path']}/matins.json"
    assert service("grafana")["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == home
    assert mounts("grafana") == {
        "/etc/grafana/provisioning/datasources/matins.yaml": f"{GRAFANA}/datasources.yaml",
        "/etc/grafana/provisioning/dashboards/matins.yaml": f"{GRAFANA}/dashboards.yaml",
        home: f"{GRAFANA}/matins.json",
    }


def test_services_need_one_variable_to_be_observed() -> None:
    receiver = loaded("deploy/observe/collector.yaml")["receivers"]["otlp"]["protocols"]["http"]["endpoint"]
    line = f"OTEL_EXPORTER_OTLP_ENDPOINT=http://collector:{receiver.rpartition(':')[2]}"
    assert line in read("compose.yaml")
    assert line in read("docs/deployment.md")
    name, _, value = line.partition("=")
    assert load_settings({name: value}, need=frozenset()).otel == {name: value}
    assert re.search(rf"^  {name}:$", read("compose.yaml"), re.MULTILINE)
