"""A real Prometheus that fetches from what a test says, with the project's own configuration otherwise."""

import json
import shutil
import signal
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any, Self

import yaml

from examples.servers.installer import find_promtool
from examples.servers.ports import LOOPBACK, free_ports
from examples.servers.process import Process, give_away, private_folder
from examples.servers.server import wait_until
from tests.architecture.sources import ROOT

DEPLOY = ROOT / "deploy" / "prometheus"
START_SECONDS = 15.0
STOP_SECONDS = 5.0


class RefusedError(Exception):
    """Prometheus refuses an expression; the message is its own."""


class Prometheus:
    """Prometheus with the configuration of compose.yaml, but that `targets` of jobs are elsewhere and fetched often.

    As a context manager it runs.
    """

    def __init__(self, targets: Mapping[str, str], virtual_host: str) -> None:
        tool = find_promtool()
        assert tool is not None, "this needs Prometheus: apt-get install prometheus"
        self._program = tool.with_name("prometheus")
        self._port = free_ports(1)[0]
        self._folder = private_folder("prometheus")
        described = yaml.safe_load((DEPLOY / "prometheus.yml").read_text(encoding="utf-8"))
        described["global"] |= {"scrape_interval": "500ms", "scrape_timeout": "500ms", "evaluation_interval": "500ms"}
        for one in described["scrape_configs"]:
            one["static_configs"] = [{"targets": [targets.get(one["job_name"], f"{LOOPBACK}:{self._port}")]}]
            if "params" in one:
                one["params"]["vhost"] = [virtual_host]
        self._configuration = self._folder / "prometheus.yml"
        self._configuration.write_text(yaml.safe_dump(described), encoding="utf-8")
        shutil.copy(DEPLOY / "matins.rules.yml", self._folder)
        for path in self._folder.iterdir():
            give_away(path)

    @property
    def url(self) -> str:
        """Its address."""
        return f"http://{LOOPBACK}:{self._port}"

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Give the series that an expression has now; raises RefusedError."""
        asked = urllib.parse.urlencode({"query": expression})
        try:
            with urllib.request.urlopen(f"{self.url}/api/v1/query?{asked}", timeout=10) as answer:  # noqa: S310 - the process of this test
                found: list[dict[str, Any]] = json.load(answer)["data"]["result"]
        except urllib.error.HTTPError as error:
            raise RefusedError(error.read().decode()) from error
        return found

    def __enter__(self) -> Self:
        command = [
            str(self._program),
            f"--config.file={self._configuration}",
            f"--storage.tsdb.path={self._folder / 'data'}",
            f"--web.listen-address={LOOPBACK}:{self._port}",
        ]
        self._process = Process(command, environment={}, log=self._folder / "log")
        wait_until(self._answers, START_SECONDS, self._process.last_lines)
        return self

    def __exit__(self, *_: object) -> None:
        self._process.end(signal.SIGTERM, STOP_SECONDS)
        shutil.rmtree(self._folder, ignore_errors=True)

    def _answers(self) -> bool:
        self._process.check()
        try:
            urllib.request.urlopen(f"{self.url}/-/ready", timeout=1).close()  # noqa: S310 - the process of this test
        except OSError:
            return False
        return True
