"""What each user of the broker may do: the manifest that `rights` prints and `doctor` compares with. Pure.

RabbitMQ knows three rights over names. `configure` makes and deletes. `write` publishes to an exchange, and binds a
queue where an exchange may be read too. `read` takes messages from a queue and purges it, and binds an exchange where a
queue may be written to. So a service reads no exchange, and can bind nothing.

From RabbitMQ 4.3.1 on, who looks whether a part is there needs some right over it. The least harmful is `write`: over a
queue it gives nothing to who can read no exchange, and what is published to the environment's mark reaches nobody.

What RabbitMQ cannot tell apart stays: who may take messages from a queue may purge it, who may publish to a delay
exchange holds the same right over the queue behind it, which has its name, and whoever makes a queue that hands its
dead letters on must have the right to write to where they go.
"""

import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Who = Literal["owner", "trigger", "worker", "operator"]
Right = Literal["configure", "write", "read"]
WHO: tuple[Who, ...] = ("owner", "trigger", "worker", "operator")
RIGHTS: tuple[Right, ...] = ("configure", "write", "read")

# Matches no name of a part, and is how RabbitMQ's own documentation writes it.
NONE = "^$"


@dataclass(frozen=True, slots=True)
class Rights:
    """Three regular expressions over the names of exchanges and queues, as `rabbitmqctl set_permissions` takes them."""

    configure: str
    write: str
    read: str

    def permits(self, right: Right, name: str) -> bool:
        """Tell whether a right over a name is held; the default exchange's name is `amq.default`."""
        pattern: str = getattr(self, right)
        return re.search(pattern, name) is not None


def rights_under(prefix: str) -> dict[Who, Rights]:
    """Give everybody's rights over the parts whose names begin with `prefix`, whatever queues there are."""

    def over(*names: str) -> str:
        dot = re.escape(".")
        return f"^{prefix.replace('.', dot)}{dot}({'|'.join(names)})$"

    # An exchange alone has the short name; what stands behind it has a longer one.
    environment, mark = r"environment", r"environment\..+"
    work, work_queues = r"work", r"work\..+"
    dead, dead_queues, accounted, parked = r"dead", r"dead\..+", r"dead\.accounted", r"dead\.parked"
    delays = r"delay\..+"
    seen = (environment, mark, work_queues, dead_queues)
    return {
        "owner": Rights(
            configure=over(environment, mark, work, work_queues, dead, dead_queues, delays),
            write=over(mark, work, work_queues, dead, dead_queues, delays),
            read=over(environment, work, work_queues, dead, delays),
        ),
        "trigger": Rights(configure=NONE, write=over(*seen, work), read=NONE),
        "worker": Rights(configure=NONE, write=over(*seen, work, delays), read=over(work_queues, accounted)),
        "operator": Rights(configure=NONE, write=over(*seen, work), read=over(parked)),
    }


def permissions(rights: Mapping[Who, Rights], users: Mapping[str, str], virtual_host: str) -> dict[str, Any]:
    """Write the rights, and the virtual host, as RabbitMQ imports definitions; `users` are the users' names."""
    return {
        "vhosts": [{"name": virtual_host}],
        "permissions": [
            {
                "vhost": virtual_host,
                "user": users[who],
                "configure": held.configure,
                "write": held.write,
                "read": held.read,
            }
            for who, held in rights.items()
        ],
    }


def commands(rights: Mapping[Who, Rights], users: Mapping[str, str], virtual_host: str) -> str:
    """Write the rights as the commands of an administrator, a line for each user."""
    return "".join(
        f"rabbitmqctl set_permissions -p {shlex.quote(virtual_host)} {shlex.quote(users[who])}"
        f" '{held.configure}' '{held.write}' '{held.read}'\n"
        for who, held in rights.items()
    )
