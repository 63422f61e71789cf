"""Whether the broker's users may do what their manifest says, no less and no more.

What the user of MATINS_BROKER_URL may do is found out by asking the broker. What the others may is read through the
management interface, if the user of MATINS_MANAGEMENT_URL is an administrator.
"""

import re
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any
from urllib.error import HTTPError

from shared.broker_probes import DEFAULT_EXCHANGE, probe_rights
from shared.broker_probes import Right as Held
from shared.settings import Settings
from shared.topology import Binding, Exchange, Topology
from trigger.broker_rights import RIGHTS, WHO, Rights, Who, rights_under
from trigger.doctor_finding import Finding, fail, ok, warn
from trigger.management import fetch, user_of, virtual_host_of

CHECK = "broker rights"
APPLY = "apply what `python -m trigger rights` prints"
SHOWN = 4
OTHER = "matins-probe"
_REFUSED = frozenset({401, 403})


async def check_own_rights(settings: Settings, url: str, topology: Topology, seconds: float) -> Finding:
    """Find out what the user of `url` may do, and compare. Raises BrokerUnavailable."""
    held = await probe_rights(url, topology, timeout=seconds)
    user, manifest = user_of(url), rights_under(topology.prefix)
    by_name = {name: who for who, name in settings.broker_users.items()}
    if user in by_name:
        who: Any = by_name[user]
        return _judged(user, who, _differences(manifest[who], held))
    fitting = [who for who in WHO if not any(_differences(manifest[who], held))]
    if fitting:
        return ok(CHECK, f"user {user!r} may do what {_role(fitting[0])} needs")
    told = f"user {user!r} is none of {', '.join(settings.broker_users.values())}, and has other rights than they need"
    return warn(CHECK, told, f"{APPLY}, and name the users in MATINS_BROKER_USERS if they are called otherwise")


async def check_listed_rights(
    settings: Settings, management: str, url: str, topology: Topology
) -> AsyncIterator[Finding]:
    """Compare what the management interface lists for each user of ours; nothing if it lists nothing to this one."""
    try:
        listed = await fetch(management, "vhosts", virtual_host_of(url), "permissions")
        tags = {one["name"]: one.get("tags") for one in await fetch(management, "users")}
    except HTTPError as error:
        if error.code in _REFUSED:
            return
        raise
    by_user = {one["user"]: Rights(one["configure"], one["write"], one["read"]) for one in listed}
    manifest = rights_under(topology.prefix)
    for who in WHO:
        user = settings.broker_users[who]
        if user not in by_user:
            continue
        try:
            more, less = _differences(manifest[who], _listed(by_user[user], topology))
        except re.error as error:
            # RabbitMQ's expressions know a little more than ours do.
            yield warn(CHECK, f"the rights of user {user!r} cannot be compared: {error}", APPLY)
            continue
        more += [f"act as {tag}" for tag in _tags(tags.get(user)) if tag == "administrator"]
        yield _judged(user, who, (more, less))


def _listed(rights: Rights, topology: Topology) -> dict[Held, bool]:
    """Give what regular expressions permit over our parts and over other names, in the form of the probes."""
    parts = [part for part in topology.parts() if not isinstance(part, Binding)]
    names = [("exchange" if isinstance(part, Exchange) else "queue", part.name) for part in parts]
    names += [("queue", OTHER), ("exchange", DEFAULT_EXCHANGE)]
    return {
        Held(right, "exchange" if kind == "exchange" else "queue", name): rights.permits(right, name)
        for kind, name in names
        for right in RIGHTS
    }


def _differences(manifest: Rights, held: Mapping[Held, bool]) -> tuple[list[str], list[str]]:
    """Give what is held beyond the manifest, and what of the manifest is not held."""
    more = [_written(one) for one, has in held.items() if has and not manifest.permits(one.verb, one.name)]
    less = [_written(one) for one, has in held.items() if not has and manifest.permits(one.verb, one.name)]
    return more, less


def _judged(user: str, who: Who, differences: tuple[list[str], list[str]]) -> Finding:
    more, less = differences
    told = [f"may {_some(more)}, which {_role(who)} needs not"] if more else []
    told += [f"may not {_some(less)}, which {_role(who)} needs"] if less else []
    if told:
        return fail(CHECK, f"user {user!r} " + "; and ".join(told), APPLY)
    return ok(CHECK, f"user {user!r} may do what {_role(who)} needs, and no more")


def _written(held: Held) -> str:
    if held.name == DEFAULT_EXCHANGE:
        return f"{held.verb} the default exchange"
    return f"{held.verb} what is not ours" if held.name.startswith(OTHER) else str(held)


def _some(rights: Iterable[str]) -> str:
    every = list(dict.fromkeys(rights))
    more = f" and {len(every) - SHOWN} more" if len(every) > SHOWN else ""
    return ", ".join(every[:SHOWN]) + more


def _role(who: Who) -> str:
    return {"owner": "migrate", "trigger": "a trigger", "worker": "a worker", "operator": "an operator"}[who]


def _tags(tags: Any) -> list[str]:
    return tags.split(",") if isinstance(tags, str) else list(tags or ())
