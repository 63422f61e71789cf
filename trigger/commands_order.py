"""Who orders what a command does, and why."""

import socket
from typing import TYPE_CHECKING

from shared.terminal import Refused, checked_reason, operator

if TYPE_CHECKING:
    from trigger.operate import Order


def order_of(actor: str | None, reason: str) -> "Order":
    """Say who acts and why. Raises Refused for a reason that cannot be kept."""
    from shared.lifecycle import instance_id  # noqa: PLC0415 - a command loads only what it uses
    from trigger.operate import Order  # noqa: PLC0415 - a command loads only what it uses

    return Order((actor or operator())[:200], checked_reason(reason), instance_id(), socket.gethostname())


def order_or_look(actor: str | None, reason: str, *, dry_run: bool) -> "Order":
    """Say who acts and why; who only looks needs no reason. Raises Refused for none, or one that cannot be kept."""
    if not dry_run and not reason:
        raise Refused("--reason: say why, or look first with --dry-run")
    return order_of(actor, reason or "dry run")
