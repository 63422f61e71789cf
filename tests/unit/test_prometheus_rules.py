"""The rules for Prometheus name what Matins sends, by the names and labels under which Prometheus has it."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support.prometheus import sent

DEPLOY = Path(__file__).parents[2] / "deploy" / "prometheus"
RULES = [
    rule for group in yaml.safe_load((DEPLOY / "matins.rules.yml").read_text())["groups"] for rule in group["rules"]
]
OPERATIONS = (DEPLOY.parents[1] / "docs" / "operations.md").read_text(encoding="utf-8")
NAMES = [rule["alert"] for rule in RULES]
TESTED = yaml.safe_load((DEPLOY / "matins.rules.test.yml").read_text())["tests"]
GAUGES = {one.name: one.labels for one in sent() if one.kind == "gauge"}
# Prometheus writes these itself: a metric that brings one is refused by the collector's exporter.
RESERVED = {"job", "instance", "le", "quantile"}


def test_every_metric_of_a_rule_is_one_that_is_sent() -> None:
    named = {name for rule in RULES for name in re.findall(r"\bmatins_\w+", rule["expr"])} - {"matins_job"}
    assert named
    assert named - set(GAUGES) == set()


def test_every_gauge_is_described_to_operators_with_its_labels() -> None:
    rows = re.findall(r"^\| `[\w.]+`[^|]*\| `(\w+)` \|(.*)\|$", OPERATIONS, re.MULTILINE)
    assert {name: frozenset(re.findall(r"`(\w+)`", labels)) for name, labels in rows} == GAUGES


def test_the_labels_of_a_rule_are_those_that_are_sent() -> None:
    labels = {label for rule in RULES for label in re.findall(r"by \((\w+)\)", rule["expr"])}
    assert labels == {"matins_job", "kind"}
    assert labels <= {label for found in GAUGES.values() for label in found}


def test_no_metric_brings_a_label_that_prometheus_writes_itself() -> None:
    assert {one.name: one.labels & RESERVED for one in sent() if one.labels & RESERVED} == {}


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_each_rule_says_how_bad_it_is_and_what_to_do_and_is_tried_firing(rule: dict[str, Any]) -> None:
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert set(rule["annotations"]) == {"summary", "description"}
    assert re.fullmatch(r"Matins[A-Z]\w+", rule["alert"])
    tried = [one for test in TESTED for one in test["alert_rule_test"] if one["alertname"] == rule["alert"]]
    assert any(one.get("exp_alerts") for one in tried), "it fires"
    assert any(not one.get("exp_alerts") for one in tried), "and it does not when all is well"
