from dataclasses import replace

import pytest

from shared.topology import Binding, Exchange, InvalidTopology, Queue, Topology
from shared.topology_versions import key_of, work_queues_of
from trigger.deploy import elsewhere, merged

TOPOLOGY = Topology("matins", "staging", frozenset({"default", "invoices"}), (1, 30, 600), 20)


def test_where_dead_letters_go_exists_before_any_queue_that_has_some() -> None:
    made: set[str] = set()
    for part in TOPOLOGY.parts():
        match part:
            case Exchange():
                made.add(part.name)
            case Queue():
                assert part.arguments.get("x-dead-letter-exchange", TOPOLOGY.dead_exchange) in made
                if part.arguments.get("x-dead-letter-exchange") == TOPOLOGY.dead_exchange:
                    assert {TOPOLOGY.parked_queue, TOPOLOGY.accounted_queue} <= bound(made)
                made.add(part.name)
            case Binding():
                assert {part.exchange, part.queue} <= made
                made.add(f"bound {part.queue}")


def bound(made: set[str]) -> set[str]:
    return {name.removeprefix("bound ") for name in made if name.startswith("bound ")}


def test_the_environment_is_tried_before_anything_else_and_before_its_own_mark() -> None:
    first, second, *_ = TOPOLOGY.parts()
    assert first == Exchange("matins.environment", "fanout", {"alternate-exchange": "matins.environment.staging"})
    assert second == Exchange("matins.environment.staging", "fanout", {})


def test_a_work_queue_keeps_its_dead_letters() -> None:
    assert (
        Queue(
            "matins.work.invoices",
            {
                "x-queue-type": "quorum",
                "x-dead-letter-exchange": "matins.dead",
                "x-dead-letter-strategy": "at-least-once",
                "x-overflow": "reject-publish",
                "x-delivery-limit": 20,
            },
        )
        in TOPOLOGY.parts()
    )
    assert Binding("matins.work", "matins.work.invoices", "invoices") in TOPOLOGY.parts()


def test_a_delay_queue_hands_on_under_the_key_that_it_was_given() -> None:
    [queue] = [part for part in TOPOLOGY.parts() if isinstance(part, Queue) and part.name == "matins.delay.30s"]
    assert queue.arguments["x-message-ttl"] == 30_000
    assert queue.arguments["x-dead-letter-exchange"] == "matins.work"
    assert "x-dead-letter-routing-key" not in queue.arguments


@pytest.mark.parametrize(
    ("remaining", "delay"),
    [(-5, 1), (0, 1), (0.9, 1), (1, 1), (29.9, 1), (30, 30), (599, 30), (600, 600), (86_400, 600)],
)
def test_the_delay_is_the_longest_that_is_not_too_long_or_else_the_shortest(remaining: float, delay: int) -> None:
    assert TOPOLOGY.delay_for(remaining) == delay


def test_no_name_belongs_to_two_parts() -> None:
    for kind in (Exchange, Queue):
        names = [part.name for part in TOPOLOGY.parts() if isinstance(part, kind)]
        assert len(set(names)) == len(names)


def test_a_record_of_the_same_parts_differs_in_nothing() -> None:
    assert TOPOLOGY.differences(TOPOLOGY.as_record()) == []


def test_a_record_with_more_queues_differs_in_nothing() -> None:
    more = replace(TOPOLOGY, queues=TOPOLOGY.queues | {"reports"}, delays=(*TOPOLOGY.delays, 3600))
    assert TOPOLOGY.differences(more.as_record()) == []


def test_differences_name_part_and_argument_and_both_values() -> None:
    record = replace(TOPOLOGY, queues=frozenset({"default"})).as_record()
    record["queues"]["matins.work.default"]["x-delivery-limit"] = 10
    assert TOPOLOGY.differences(record) == [
        "queue matins.work.default: x-delivery-limit is 10 in the record, 20 is needed",
        "queue matins.work.invoices is not in the record",
        "queue matins.work.invoices is not bound to exchange matins.work with key 'invoices' in the record",
    ]


def test_another_limit_is_another_queue_under_another_key() -> None:
    raised = replace(TOPOLOGY, delivery_limit=50)
    name = raised.work_queue("invoices")
    assert name == "matins.work.invoices@e54e27", "the same in every release: queues of this name exist"
    assert Binding("matins.work", name, "invoices@e54e27") in raised.parts()
    assert replace(raised, prefix="other").routing_key("invoices") == "invoices@e54e27"
    assert key_of("matins", name) == key_of("matins", "matins.work.invoices") == "invoices"
    assert key_of("matins", "matins.dead.parked") is None


def test_other_versions_of_our_queues_are_found_in_the_record() -> None:
    raised = replace(TOPOLOGY, delivery_limit=50, queues=frozenset({"invoices", "invoices.late"}))
    record = merged(TOPOLOGY.as_record(), raised)
    assert raised.other_versions(record) == {"matins.work.invoices": "invoices"}
    assert TOPOLOGY.other_versions(record) == {"matins.work.invoices@e54e27": "invoices"}
    assert TOPOLOGY.other_versions(None) == {}
    assert work_queues_of("matins", {"invoices", "new"}, record) == [
        "matins.work.invoices",
        "matins.work.invoices@e54e27",
        "matins.work.new",
    ]


def test_a_key_that_leads_elsewhere_leads_home_once_its_queue_is_made_again() -> None:
    record = replace(TOPOLOGY, queues=frozenset({"default"})).as_record()
    record["bindings"] = [["matins.work", "matins.work.default@e54e27", "default"]]
    assert elsewhere(record, TOPOLOGY) == [Binding("matins.work", "matins.work.default@e54e27", "default")]
    assert elsewhere(merged(record, TOPOLOGY), TOPOLOGY) == []


def test_another_environment_is_a_difference() -> None:
    differences = TOPOLOGY.differences(replace(TOPOLOGY, environment="production").as_record())
    assert differences[0] == "environment is 'production' in the record, 'staging' here"


def test_an_empty_record_lacks_everything() -> None:
    assert len(TOPOLOGY.differences({})) == len(TOPOLOGY.parts()) + 2


def test_everything_that_is_wrong_is_said_at_once() -> None:
    with pytest.raises(InvalidTopology) as raised:
        Topology("Matins", "", frozenset({"a b", "good"}), (0, 5, 5), 0)
    found = [problem.split(" must ")[0] for problem in raised.value.problems]
    assert found == [
        "prefix 'Matins'",
        "environment ''",
        "queue 'a b'",
        "delays (0, 5, 5)",
        "delay 0",
        "delivery limit 0",
    ]


@pytest.mark.parametrize("prefix", ["amq.matins", "1st", "a" * 64, "a\n", "ä", "matins.work", "matins.dead.x"])
def test_a_prefix_that_the_broker_or_a_person_would_stumble_over_is_refused(prefix: str) -> None:
    with pytest.raises(InvalidTopology, match="prefix"):
        replace(TOPOLOGY, prefix=prefix)
