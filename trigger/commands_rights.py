"""The command `rights`."""

from typing import Annotated

import typer

from shared.terminal import print_json, settings_for, told
from shared.terminal_tables import print_line
from trigger.broker_rights import commands, permissions, rights_under
from trigger.commands_deploy import PROGRAM
from trigger.commands_options import AsJson


def rights_command(
    *,
    virtual_host: Annotated[str, typer.Option("--virtual-host", help="Where the users get their rights.")] = "/",
    as_json: AsJson = False,
) -> None:
    """Print what each user of the broker may do, as an administrator applies it; touch nothing.

    The users are `owner` (of migrate), `trigger`, `worker` and `operator`, or as MATINS_BROKER_USERS names them.
    Printed are rabbitmqctl's commands, or with --json a document that RabbitMQ imports as definitions. The rights hold
    for all names under MATINS_PREFIX, so another job or queue needs no other rights. `doctor` compares with them.
    """
    with told(PROGRAM):
        settings = settings_for()
        rights = rights_under(settings.prefix)
        if as_json:
            print_json(permissions(rights, settings.broker_users, virtual_host))
        else:
            for line in commands(rights, settings.broker_users, virtual_host).splitlines():
                print_line(line)
