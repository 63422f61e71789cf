"""The commands on the trail, as a person or a machine calls them: what they print, and their exit codes."""

import json
import sys
from typing import Any

import anyio

from shared.migrate import enter_environment
from tests.integration.audit.trail import append, head, seal_all
from tests.support.ledger import session_on


async def command(url: str, *arguments: str) -> tuple[int, str, str]:
    """Run a command of the trigger; give its exit code and what it says."""
    settings = {"MATINS_DATABASE_URL": url, "MATINS_ENVIRONMENT": "test", "PATH": "/usr/bin:/bin", "USER": "ann"}
    done = await anyio.run_process([sys.executable, "-m", "trigger", *arguments], env=settings, check=False)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


async def test_the_trail_is_read_verified_and_pruned(database_url: str) -> None:
    async with session_on(database_url) as session:
        await enter_environment(session, "test", create=True)
        await append(session, "customer 4711 asked", "two", kind="called")
        await seal_all(session)
        last = await head(session)
        code, said, _ = await command(database_url, "audit", "--job", "night", "--json", "--limit", "1")
        (entry,) = json.loads(said)
        assert (code, entry["reason"], entry["position"], entry["instance"]) == (0, "two", 2, "test")
        code, said, _ = await command(database_url, "audit", "--kind", "called")
        assert (code, "customer 4711 asked" in said, "instance test" in said) == (0, True, True)
        anchor = f"{last['hash'].hex()}@2"
        code, said, _ = await command(database_url, "audit", "--verify", "--anchor", anchor)
        assert (code, "the audit trail is whole: 2 sealed rows" in said, anchor in said) == (0, True, True)
        code, said, _ = await command(database_url, "forget-account", "4711", "--reason", "asked", "--yes", "--json")
        told: dict[str, Any] = json.loads(said)
        assert (code, told["redacted"]) == (0, 1)
        await seal_all(session)
        code, said, _ = await command(database_url, "audit", "--verify", "--json", "--anchor", anchor)
        found = json.loads(said)
        assert (code, found["whole"], found["redacted"], found["unsealed"]) == (0, True, 1, 0)
        code, said, _ = await command(database_url, "prune-audit", "--before", "2000-01-01", "--dry-run", "--json")
        assert (code, json.loads(said)["rows"]) == (0, 0)
        await session.execute("update matins.audit set reason = 'x' where reason = 'two'")
        code, said, _ = await command(database_url, "audit", "--verify")
        assert code == 1
        assert said.startswith("altered: row 2 (called of night,")
        code, _, refused = await command(database_url, "audit", "--verify", "--anchor", "nowhere")
        assert (code, "neither HASH@POSITION nor a file" in refused) == (2, True)
        code, _, refused = await command(database_url, "audit", "--verify", "--job", "night")
        assert (code, "leave out what would narrow it" in refused) == (2, True)
