"""Everything that the JSON answers: the one table of which its routes and its description are made. Pure."""

from typing import Any, Final

from trigger.console.api import reads_fleet, reads_runs, reads_trail
from trigger.console.api.description import Described, description
from trigger.console.api.fields import anything
from trigger.console.api.route import Question, Read


async def _described(_question: Question) -> Any:
    return DESCRIPTION


READS: Final = (
    *reads_fleet.READS,
    *reads_runs.READS,
    *reads_trail.READS,
    Read("/openapi.json", "description", "This description.", anything("OpenAPI 3.1."), _described),
)
DESCRIPTION: Final[Described] = description(READS)
