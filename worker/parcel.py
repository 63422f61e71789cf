"""A delivery that has been read, and the two ways in which its handling can end without an acknowledgement."""

from dataclasses import dataclass

from schemas.message import WorkMessage
from shared.broker import Delivery
from shared.errors import MatinsError


class NotHandedOn(MatinsError):
    """A message could not be published on; it was not acknowledged, and can be handled again."""


class GivenUp(MatinsError):
    """The message was rejected to the dead letters, and must not be acknowledged."""


@dataclass(slots=True)
class Parcel:
    """A delivery and the message read from it; `start_committed` once this process has counted its start."""

    delivery: Delivery
    message: WorkMessage
    start_committed: bool = False

    @property
    def suspect(self) -> bool:
        """Tell whether an earlier delivery may have ended its worker."""
        return self.message.isolated or self.delivery.redelivered

    @property
    def context(self) -> str:
        """The trace context that travelled with it."""
        return self.delivery.trace_context
