"""Which part may import which, and who owns each outside library, the clock and the environment."""

import os
import subprocess
import sys
from fnmatch import fnmatch
from pathlib import Path

import grimp

from tests.architecture.sources import PRODUCT, ROOT, modules, names_used

OWNERS = {
    "aio_pika": "shared/broker*.py",
    "aiosmtplib": "shared/channel_email.py",
    "aiormq": "shared/broker*.py",
    "anyio.sleep": "shared/clock.py",
    "anyio.sleep_forever": "shared/clock.py",
    "anyio.sleep_until": "shared/clock.py",
    "asyncio.create_task": "",
    "asyncio.ensure_future": "",
    "asyncio.sleep": "shared/clock.py",
    "asyncpg": "shared/postgres*.py",
    "authlib": "trigger/console/provider.py",
    "datetime.date.today": "shared/clock.py",
    "datetime.datetime.now": "shared/clock.py",
    "datetime.datetime.today": "shared/clock.py",
    "datetime.datetime.utcnow": "shared/clock.py",
    "httpx2": "shared/channel_http.py",
    "opentelemetry": "shared/telemetry*.py",
    "os.environ": "shared/settings.py",
    "os.getenv": "shared/settings.py",
    "pamqp": "shared/broker*.py",
    "structlog": "shared/logs.py",
    "time.sleep": "shared/clock.py",
    "time.time": "shared/clock.py",
}
# Decisions that can be tested without anything else; a pattern each.
PURE = (
    "schemas*",
    "shared.api_callers",
    "shared.channels",
    "shared.console_access",
    "shared.notice*",
    "shared.webhook_signing",
    "shared.cron*",
    "shared.bounds",
    "shared.exclusions",
    "shared.placing",
    "shared.schedule*",
    "shared.timing",
    "trigger.api_limits",
    "trigger.catch_up",
    "trigger.console.claims",
    "trigger.console.forgery",
    "trigger.console.person",
    "trigger.console.proxied",
    "trigger.identity_tokens",
    "trigger.lint*",
    "trigger.overlap",
    "trigger.preview*",
    "trigger.replan",
    "trigger.signatures",
    "worker.outcome",
)
INPUT_AND_OUTPUT = (
    "aio_pika",
    "aiormq",
    "anyio",
    "asyncio",
    "asyncpg",
    "opentelemetry",
    "shared.broker*",
    "shared.clock",
    "shared.postgres*",
    "shared.settings",
    "shared.telemetry*",
    "socket",
    "starlette",
    "structlog",
    "subprocess",
    "urllib.request",
)
FEW_MODULES = 6


def test_the_import_contracts_are_kept() -> None:
    program = Path(sys.executable).with_name("lint-imports")
    checked = subprocess.run(
        [program, "--no-cache"],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


def test_each_outside_library_the_clock_and_the_environment_have_one_owner() -> None:
    trespasses = [
        f"{path} uses {name}, which belongs to {owner or 'nobody'}"
        for path, _, tree in modules(*PRODUCT)
        for name in sorted(names_used(tree))
        for owned, owner in OWNERS.items()
        if (name == owned or name.startswith(f"{owned}.")) and not fnmatch(path, owner)
    ]
    assert trespasses == []


def test_pure_modules_do_no_input_or_output() -> None:
    graph = grimp.build_graph(*PRODUCT, include_external_packages=True, cache_dir=None)
    tainted = {
        f"{module} reaches {reached}"
        for module in graph.modules
        if any(fnmatch(module, pattern) for pattern in PURE)
        for reached in graph.find_upstream_modules(module)
        if any(fnmatch(reached, pattern) for pattern in INPUT_AND_OUTPUT)
    }
    assert tainted == set()


def test_every_pure_module_exists_once_its_package_is_written() -> None:
    names = [path.removesuffix(".py").replace("/", ".") for path, _, _ in modules(*PRODUCT)]
    for pattern in PURE:
        siblings = [name for name in names if name.startswith(pattern.partition(".")[0])]
        assert len(siblings) < FEW_MODULES or any(fnmatch(name, pattern) for name in siblings), pattern
