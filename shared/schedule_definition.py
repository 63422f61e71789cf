"""The schedule that a recorded definition describes, of whatever kind. Pure."""

from collections.abc import Mapping
from typing import Any

from shared.cron_fields import shorten
from shared.errors import DeclarationError
from shared.schedule import Cron
from shared.schedule_every import Every
from shared.schedule_except import except_of
from shared.schedule_instants import Instants
from shared.schedule_protocol import Schedule


def schedule_of(definition: Mapping[str, Any]) -> Schedule:
    """Make the schedule again; a definition without a `kind` is cron text, as the first release wrote it.

    Raises:
        DeclarationError: the kind or a key is not known, or is missing.
        FaultyDeclaration: a value is not usable.
    """
    match definition.get("kind", "cron"):
        case "cron":
            return Cron.from_definition(definition)
        case "every":
            return Every.from_definition(definition)
        case "instants":
            return Instants.from_definition(definition)
        case "except":
            return except_of(definition, schedule_of(definition.get("schedule", {})))
        case kind:
            raise DeclarationError("schedule definition", f"is of the kind {shorten(kind)}", "every, instants, except")
