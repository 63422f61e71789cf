"""What commands say with `--json`: several of them in one process of their own, as they are run from a terminal."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import anyio
from typer.testing import CliRunner

from trigger.command import application


async def commanded(variables: Mapping[str, str], *commands: Sequence[str]) -> list[Any]:
    """Run commands of the trigger's program with these variables; give what each has written as JSON."""
    done = await anyio.run_process(
        [sys.executable, "-m", "tests.console.commanded"],
        input=json.dumps(commands).encode(),
        env=variables,
        stderr=subprocess.PIPE,
    )
    return [json.loads(one) for one in json.loads(done.stdout)]


def main() -> None:
    """Run what standard input lists."""
    written = [CliRunner().invoke(application, [*one, "--json"]).stdout for one in json.load(sys.stdin)]
    sys.stdout.write(json.dumps(written))


if __name__ == "__main__":
    main()
