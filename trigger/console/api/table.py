"""Everything that the JSON answers: the one table of which its routes and its description are made. Pure."""

from typing import Any, Final

from trigger.console.acting import ACTS
from trigger.console.api import reads_fleet, reads_runs, reads_trail
from trigger.console.api.description import Described, description
from trigger.console.api.fields import anything, component, maybe
from trigger.console.api.parameters import in_path
from trigger.console.api.route import Question, Read


async def _described(_question: Question) -> Any:
    return DESCRIPTION


async def _person(question: Question) -> Any:
    """Give who asks; null where nobody signs in."""
    admitted = question.admitted
    if admitted is None:
        return None
    person = admitted.person
    return {"name": person.name, "role": person.role, "means": person.means, "csrf": admitted.form_word}


_NUMBER: Final = {"format": "number", "minLength": 1}
SUBJECTS: Final = {
    "job": reads_fleet.JOB,
    "occurrence": reads_runs.OCCURRENCE,
    "alert": reads_trail.ALERT,
    "backfill": in_path("backfill", "Its number, as `/backfills` has it.", "3", _NUMBER),
    "maintenance": in_path("maintenance", "Its number, as `/maintenance` has it.", "2", _NUMBER),
}
_PERSON: Final = maybe(component("Person"), example=True)
READS: Final = (
    *reads_fleet.READS,
    *reads_runs.READS,
    *reads_trail.READS,
    Read(
        "/person", "person", "Who asks; null where nobody signs in.", maybe(component("Person"), example=True), _person
    ),
    Read("/openapi.json", "description", "This description.", anything("OpenAPI 3.1."), _described),
)
DESCRIPTION: Final[Described] = description(READS, ACTS, SUBJECTS)
