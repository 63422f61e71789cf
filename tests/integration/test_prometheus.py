"""The ready rules are taken by Prometheus's own tool, and fire when they should."""

import subprocess
from pathlib import Path

from examples.servers.installer import find_promtool

RULES = Path(__file__).parents[2] / "deploy" / "prometheus"


def promtool(*arguments: str) -> None:
    """Run Prometheus's tool where the rules lie."""
    tool = find_promtool()
    assert tool is not None, "this needs promtool: apt-get install prometheus"
    done = subprocess.run([tool, *arguments], cwd=RULES, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_prometheus_takes_the_rules() -> None:
    promtool("check", "rules", "--lint=all", "--lint-fatal", "matins.rules.yml")


def test_prometheus_takes_its_configuration() -> None:
    promtool("check", "config", "prometheus.yml")


def test_each_rule_fires_when_it_should_and_not_otherwise() -> None:
    promtool("test", "rules", "matins.rules.test.yml")
