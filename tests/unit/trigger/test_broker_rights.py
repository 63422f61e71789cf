"""The manifest of the broker's users, compared with the parts that there are."""

import json
from pathlib import Path

import pytest

from shared.setting_values import BROKER_USERS
from shared.settings import load_settings
from shared.topology import Binding, Exchange, Queue, Topology
from trigger.broker_rights import RIGHTS, WHO, Right, Who, commands, permissions, rights_under

ROOT = Path(__file__).resolve().parents[3]
TOPOLOGY = Topology("matins", "test", frozenset({"default", "reports.large"}), (1, 60), 20)
NAMES = {part.name for part in TOPOLOGY.parts() if not isinstance(part, Binding)}
MARKS = {TOPOLOGY.environment_exchange, TOPOLOGY.environment_mark}
WORK_QUEUES = {TOPOLOGY.work_queue(key) for key in TOPOLOGY.queues}
DEAD_QUEUES = {TOPOLOGY.parked_queue, TOPOLOGY.accounted_queue}
DELAYS = {TOPOLOGY.delay_exchange(seconds) for seconds in TOPOLOGY.delays}
SEEN = MARKS | WORK_QUEUES | DEAD_QUEUES
PUBLISHED = {
    "trigger": {TOPOLOGY.work_exchange},
    "worker": {TOPOLOGY.work_exchange} | DELAYS,
    # What is parked is published again by a person.
    "operator": {TOPOLOGY.work_exchange},
}
TAKEN = {"trigger": set(), "worker": WORK_QUEUES | {TOPOLOGY.accounted_queue}, "operator": {TOPOLOGY.parked_queue}}
OUTSIDE = (
    "amq.default",
    "amq.direct",
    "amq.gen-Zq3",
    "matins",
    "matins.",
    "matins.works",
    "other.work",
    "my.matins.work",
    "matins-two.work.default",
    "matinsxwork",
)


def held(who: Who, right: Right) -> set[str]:
    """Give the parts over which somebody has a right."""
    rights = rights_under("matins")[who]
    return {name for name in NAMES if rights.permits(right, name)}


@pytest.mark.parametrize("who", ["trigger", "worker", "operator"])
def test_a_service_makes_nothing_publishes_where_it_must_and_reads_what_it_consumes(who: Who) -> None:
    assert held(who, "configure") == set()
    assert held(who, "write") == SEEN | PUBLISHED[who]
    assert held(who, "read") == TAKEN[who]


@pytest.mark.parametrize("who", ["trigger", "worker", "operator"])
def test_a_service_reads_no_exchange_and_so_can_bind_nothing(who: Who) -> None:
    exchanges = {part.name for part in TOPOLOGY.parts() if isinstance(part, Exchange)}
    assert held(who, "read").isdisjoint(exchanges)


def test_the_owner_makes_every_part_and_takes_no_dead_letter() -> None:
    assert held("owner", "configure") == NAMES
    assert held("owner", "read").isdisjoint(DEAD_QUEUES)
    for part in TOPOLOGY.parts():
        match part:
            case Binding():
                assert part.queue in held("owner", "write")
                assert part.exchange in held("owner", "read")
            case Queue():
                target = part.arguments.get("x-dead-letter-exchange")
                assert target is None or (target in held("owner", "write") and part.name in held("owner", "read"))
            case Exchange():
                target = part.arguments.get("alternate-exchange")
                assert target is None or (target in held("owner", "write") and part.name in held("owner", "read"))


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("name", OUTSIDE)
def test_nobody_has_a_right_over_other_names(who: Who, name: str) -> None:
    rights = rights_under("matins")[who]
    assert [right for right in RIGHTS if rights.permits(right, name)] == []


def test_a_dot_in_the_prefix_is_a_dot() -> None:
    rights = rights_under("a.b")["trigger"]
    assert rights.permits("write", "a.b.work")
    assert not rights.permits("write", "axb.work")


def test_the_users_of_the_setting_are_those_of_the_manifest() -> None:
    assert BROKER_USERS == WHO


def test_the_commands_name_the_users_and_quote_what_a_shell_would_read() -> None:
    users = {"owner": "owner", "trigger": "t", "worker": "w", "operator": "o"}
    lines = commands(rights_under("matins"), users, "my host").splitlines()
    assert lines[1].startswith("rabbitmqctl set_permissions -p 'my host' t '^$' '^matins")
    assert len(lines) == len(WHO)


def test_the_deployment_has_the_rights_of_the_manifest() -> None:
    deployed = json.loads((ROOT / "deploy/rabbitmq/rights.json").read_text(encoding="utf-8"))
    settings = load_settings({}, need=frozenset())
    made = permissions(rights_under(settings.prefix), settings.broker_users, "matins")
    assert deployed == made, "python -m trigger rights --json --virtual-host matins > deploy/rabbitmq/rights.json"
