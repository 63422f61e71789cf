"""The database's roles under the names that they have on this cluster, where roles belong to every database at once."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from schemas.privileges import READER, TRIGGER, WORKER

_PAIR = re.compile(r"([a-z_][a-z0-9_]{0,62})=([a-z_][a-z0-9_$-]{0,62})", re.ASCII)
_RESERVED = frozenset({"none", "public", "session_user", "current_user", "current_role"})
GROUPS = (TRIGGER, WORKER, READER)


@dataclass(frozen=True, slots=True)
class RoleNames:
    """What each role that this code or a job names is called here; one that isn't mapped is called as it is named."""

    mapped: Mapping[str, str] = field(default_factory=dict)

    def of(self, name: str) -> str:
        """Give the name of a role on this cluster."""
        return self.mapped.get(name, name)


NO_OTHER_NAMES = RoleNames()


def role_names(text: str) -> RoleNames:
    """Read `matins_worker=prod_worker,job_invoice=prod_invoice`. Raises ValueError with what is valid."""
    mapped: dict[str, str] = {}
    for pair in text.split(",") if text else ():
        match = _PAIR.fullmatch(pair.strip())
        if match is None or match[2] in _RESERVED or match[2].startswith("pg_") or match[1] in mapped:
            raise ValueError("NAME=ROLE with commas between, each name once, as matins_worker=prod_worker")
        mapped[match[1]] = match[2]
    groups = [mapped.get(name, name) for name in GROUPS]
    if len(set(groups)) < len(groups):
        raise ValueError(f"another role for each of {', '.join(GROUPS)}")
    return RoleNames(mapped)
