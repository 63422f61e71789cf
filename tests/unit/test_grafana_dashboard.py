"""The dashboard names what Matins and RabbitMQ send, says what each panel shows, and is one to Grafana's own model."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
import yaml
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard

from tests.architecture.sources import ROOT
from tests.support.dashboard import BESIDE, DASHBOARD, RABBITMQ, expressions, panels
from tests.support.prometheus import sent

GRAFANA = ROOT / "deploy" / "observe" / "grafana"
SERIES = {name: labels for one in sent() for name, labels in one.series.items()} | RABBITMQ | BESIDE
SOURCES = {one["uid"]: one["type"] for one in yaml.safe_load((GRAFANA / "datasources.yaml").read_text())["datasources"]}
RULES = (ROOT / "deploy" / "prometheus" / "matins.rules.yml").read_text(encoding="utf-8")
# What the model does not know of an annotation, since Prometheus's data source alone reads it.
OF_PROMETHEUS = {"step", "useValueForTime", "titleFormat", "textFormat", "tagKeys"}
SELECTORS = re.compile(r"\{[^}]*\}")
GROUPINGS = re.compile(r"\bby \(([^)]*)\)")
WORDS = re.compile(r"\b(?:matins|messaging|rabbitmq)_\w+|\bup\b|\bALERTS\b")


def named(expression: str) -> set[str]:
    """Give the series that an expression names."""
    return set(WORDS.findall(GROUPINGS.sub("", SELECTORS.sub("", expression))))


def labelled(expression: str) -> set[str]:
    """Give the labels that an expression chooses or groups by."""
    chosen = {
        label for selector in SELECTORS.findall(expression) for label in re.findall(r"(\w+)\s*(?:!=|=~|!~|=)", selector)
    }
    return chosen | {label.strip() for group in GROUPINGS.findall(expression) for label in group.split(",")}


def kept(expression: str) -> set[str]:
    """Give the labels that are left for a legend: those of the outermost grouping, which all expressions begin with."""
    groups = GROUPINGS.findall(expression)
    return {label.strip() for label in groups[0].split(",")} if groups else set()


def lost(written: Any, read: Any, place: str = "") -> Iterator[str]:
    """Name what was written and was not read again."""
    if isinstance(written, dict) and isinstance(read, dict):
        for key, value in written.items():
            if key in read:
                yield from lost(value, read[key], f"{place}.{key}")
            else:
                yield f"{place}.{key}"
    elif isinstance(written, list) and isinstance(read, list) and len(written) == len(read):
        for number, (one, other) in enumerate(zip(written, read, strict=True)):
            yield from lost(one, other, f"{place}[{number}]")
    elif written != read:
        yield place


@pytest.mark.parametrize("expression", expressions())
def test_an_expression_names_what_is_sent_with_the_labels_that_it_has(expression: str) -> None:
    assert named(expression)
    assert named(expression) - set(SERIES) == set()
    labels = {label for name in named(expression) for label in SERIES[name]}
    assert labelled(expression) - labels == set()


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])
def test_a_panel_says_what_it_shows_in_which_unit_and_reads_from_a_source_that_there_is(panel: dict[str, Any]) -> None:
    assert panel["title"]
    assert len(panel["description"]) > 20
    assert panel["fieldConfig"]["defaults"]["unit"]
    source = panel["datasource"]
    assert SOURCES[source["uid"]] == source["type"]
    assert panel["targets"]
    assert all(target["datasource"] == source for target in panel["targets"])
    references = [target["refId"] for target in panel["targets"]]
    assert len(set(references)) == len(references)


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])
def test_a_legend_is_made_of_labels_that_are_left(panel: dict[str, Any]) -> None:
    for target in panel["targets"]:
        written = re.findall(r"\{\{(\w+)\}\}", target.get("legendFormat", ""))
        # Le is summed over by the quantile.
        assert set(written) == kept(target.get("expr", "")) - {"le"} or "format" in target, target
        assert "legendFormat" in target or target.get("instant") or target["datasource"]["type"] == "jaeger"


def test_deploys_are_marked_with_what_was_deployed() -> None:
    (marked,) = DASHBOARD["annotations"]["list"]
    assert named(marked["expr"]) == {"matins_deploy_timestamp_seconds"}
    # In milliseconds, as the time of the mark.
    assert marked["expr"].endswith("* 1000")
    assert marked["useValueForTime"] is True
    assert set(re.findall(r"\{\{(\w+)\}\}", marked["titleFormat"])) == SERIES["matins_deploy_timestamp_seconds"]


def test_the_jobs_to_choose_from_are_those_that_are_told() -> None:
    (variable,) = DASHBOARD["templating"]["list"]
    asked = re.fullmatch(r'label_values\({__name__=~"(.+)"}, (\w+)\)', variable["query"]["query"])
    assert asked is not None
    names = {name for name in SERIES if re.fullmatch(asked[1], name)}
    assert len(names) == 2
    assert all(SERIES[name] == {asked[2]} for name in names)


def test_every_gauge_is_shown_or_has_its_rule() -> None:
    shown = {name for expression in expressions() for name in named(expression)}
    gauges = {one.name for one in sent() if one.kind == "gauge"}
    assert {name for name in gauges - shown if name not in RULES} == set()


def test_panels_lie_beside_one_another_and_not_on_one_another() -> None:
    taken: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        cells = {(place["x"] + x, place["y"] + y) for x in range(place["w"]) for y in range(place["h"])}
        assert not cells & taken, panel["title"]
        assert place["x"] + place["w"] <= 24
        taken |= cells
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(numbers)) == len(numbers)


def test_it_is_a_dashboard_to_the_model_of_grafana() -> None:
    register_default_plugins()
    copy = json.loads(json.dumps(DASHBOARD))
    read = json.loads(json.dumps(Dashboard.from_json(copy), cls=JSONEncoder))
    assert set(lost(DASHBOARD, read)) == {f".annotations.list[0].{name}" for name in OF_PROMETHEUS}
