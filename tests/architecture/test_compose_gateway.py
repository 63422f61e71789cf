"""The gateway in compose.yaml: what it may do, and that its template is filled in with what there is."""

import re

from tests.architecture.test_compose import read, service
from tests.architecture.test_dockerfile import environment

TEMPLATE = "deploy/gateway/gateway.conf.template"


def test_it_has_no_rights_and_writes_to_memory_alone() -> None:
    described = service("gateway")
    assert described["read_only"] is True
    assert described["cap_drop"] == ["ALL"]
    assert described["security_opt"] == ["no-new-privileges:true"]
    assert described["tmpfs"] == ["/tmp", "/etc/nginx/conf.d:uid=101,mode=1777"]  # noqa: S108 - the path in the container, which is its own
    assert described["volumes"] == [f"./{TEMPLATE}:/etc/nginx/templates/gateway.conf.template:ro"]
    assert described["secrets"] == ["console_people"]
    assert described["environment"]["GATEWAY_PEOPLE"] == "/run/secrets/console_people"
    assert not {"privileged", "cap_add", "user", "profiles"} & described.keys()


def test_the_template_is_filled_in_and_nothing_else_of_the_environment_is() -> None:
    given = dict(service("gateway")["environment"])
    filled_in = re.compile(given.pop("NGINX_ENVSUBST_FILTER"))
    assert set(re.findall(r"\$\{(\w+)\}", read(TEMPLATE))) == set(given)
    assert all(filled_in.search(name) for name in given)


def test_it_asks_the_triggers_where_they_answer() -> None:
    given = service("gateway")["environment"]
    assert service(given["GATEWAY_TRIGGERS"])["deploy"]["replicas"] > 1
    assert given["GATEWAY_ENDPOINT_PORT"] == environment("trigger")["MATINS_API_ADDRESS"].rpartition(":")[2]
    assert given["GATEWAY_CONSOLE_PORT"] not in {
        given["GATEWAY_ENDPOINT_PORT"],
        environment("trigger")["MATINS_HEALTH_ADDRESS"].rpartition(":")[2],
    }


def test_it_listens_where_it_is_published_and_looked_at() -> None:
    (published,) = service("gateway")["ports"]
    port = service("gateway")["environment"]["GATEWAY_PORT"]
    assert published.endswith(f":{port}")
    assert f"http://127.0.0.1:{port}/-/healthy" in service("gateway")["healthcheck"]["test"]
