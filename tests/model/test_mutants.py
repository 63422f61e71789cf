"""Each guard and rule is needed: taken away, a run of the model notices. What survives fails here."""

import pytest

from tests.model.database import Server
from tests.model.directed import DIRECTED, Stage
from tests.model.mutants import MUTANTS
from tests.model.mutation import Mutant
from tests.model.profile import PROFILES
from tests.model.world import World

# Runs without a mutant that break no promise; tests/model/test_model.py has the first seed of each profile.
CLEAN = {(profile, 1) for profile in PROFILES}
pytestmark = pytest.mark.asyncio(loop_scope="module")


@pytest.mark.parametrize("play", DIRECTED)
async def test_the_promises_hold_in_a_directed_schedule(server: Server, play: str) -> None:
    assert await DIRECTED[play](Stage(server, {})) == []


@pytest.mark.timeout(180)
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda one: f"{one.rule}: {one.name}")
async def test_a_rule_taken_away_is_noticed(server: Server, mutant: Mutant) -> None:
    statements = mutant.statements()
    if mutant.profile in DIRECTED:
        with mutant.functions():
            assert await DIRECTED[mutant.profile](Stage(server, statements)) != []
        return
    profile = PROFILES[mutant.profile]
    with mutant.functions():
        for seed in range(mutant.first_seed, mutant.first_seed + mutant.seeds):
            if await World(server, profile, seed, statements).run():
                break
        else:
            pytest.fail(f"{mutant.seeds} runs of {mutant.profile!r} notice nothing")
    if (mutant.profile, seed) not in CLEAN:
        assert await World(server, profile, seed).run() == [], "the same run breaks a promise without the mutant too"
        CLEAN.add((mutant.profile, seed))
