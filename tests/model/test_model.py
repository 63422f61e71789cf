"""The product keeps its promises in every interleaving that the seeds give, whatever is crashed, frozen or lost."""

import pytest

from tests.model.arrows import ARROWS, by_arrow
from tests.model.database import Server
from tests.model.profile import HUNTED_IN, PROFILES, hunting
from tests.model.world import World

pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("profile", PROFILES)
async def test_every_promise_holds(server: Server, profile: str) -> None:
    world = World(server, PROFILES[profile], seed=1)
    assert await world.run() == [], f"python -m tests.model --profile {profile!r} --seed 1 --runs 1 --trace"


async def test_a_seed_is_one_interleaving(server: Server) -> None:
    runs = [World(server, PROFILES["chunked"], seed=5) for _ in range(2)]
    for world in runs:
        await world.run()
    assert runs[0].trace == runs[1].trace


async def test_crashes_fall_on_the_arrow_that_is_hunted(server: Server) -> None:
    world = World(server, hunting("seal → close"), seed=1)
    assert await world.run() == []
    counted = by_arrow(world.crashes)
    assert sum(counted.values()) == sum(world.crashes.values())
    assert counted["seal → close"] > 0
    assert set(HUNTED_IN) == set(ARROWS)
