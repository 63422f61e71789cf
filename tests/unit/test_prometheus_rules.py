"""The rules for Prometheus name what Matins sends, by the names and labels under which Prometheus has it."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from shared.telemetry import metrics
from shared.telemetry_gauges import JOB_LABEL, Gauge

DEPLOY = Path(__file__).parents[2] / "deploy" / "prometheus"
RULES = [
    rule for group in yaml.safe_load((DEPLOY / "matins.rules.yml").read_text())["groups"] for rule in group["rules"]
]
OPERATIONS = (DEPLOY.parents[1] / "docs" / "operations.md").read_text(encoding="utf-8")
NAMES = [rule["alert"] for rule in RULES]
TESTED = yaml.safe_load((DEPLOY / "matins.rules.test.yml").read_text())["tests"]
GAUGES = [one for one in metrics.instruments() if isinstance(one, Gauge)]
# Prometheus writes these itself: a metric that brings one is refused by the collector's exporter.
RESERVED = {"job", "instance", "le", "quantile"}


def spelled(gauge: Gauge) -> str:
    """Spell a gauge as the collector does: letters, and its unit in words unless that is in braces."""
    return re.sub(r"\W", "_", gauge.name) + {"s": "_seconds"}.get(gauge.unit, "")


def test_every_metric_of_a_rule_is_one_that_is_sent() -> None:
    named = {name for rule in RULES for name in re.findall(r"\bmatins_\w+", rule["expr"])} - {"matins_job"}
    assert named
    assert named - {spelled(gauge) for gauge in GAUGES} == set()


def test_every_gauge_is_described_to_operators() -> None:
    described = set(re.findall(r"^\| `[\w.]+`[^|]*\| `(\w+)` \|", OPERATIONS, re.MULTILINE))
    assert described == {spelled(gauge) for gauge in GAUGES}


def test_the_labels_of_a_rule_are_those_that_are_sent() -> None:
    labels = {label for rule in RULES for found in re.findall(r"by \((\w+)\)", rule["expr"]) for label in [found]}
    assert labels == {JOB_LABEL.replace(".", "_"), "kind"}


def test_no_gauge_brings_a_label_that_prometheus_writes_itself() -> None:
    assert {label for gauge in GAUGES for label in gauge.labels} == {"kind", "outcome", "system", "version", JOB_LABEL}
    assert not {label for gauge in GAUGES for label in gauge.labels} & RESERVED


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_each_rule_says_how_bad_it_is_and_what_to_do_and_is_tried_firing(rule: dict[str, Any]) -> None:
    assert set(rule) == {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in {"critical", "warning"}
    assert set(rule["annotations"]) == {"summary", "description"}
    assert re.fullmatch(r"Matins[A-Z]\w+", rule["alert"])
    tried = [one for test in TESTED for one in test["alert_rule_test"] if one["alertname"] == rule["alert"]]
    assert any(one.get("exp_alerts") for one in tried), "it fires"
    assert any(not one.get("exp_alerts") for one in tried), "and it does not when all is well"
