"""What schedules have in common that are counted in UTC, where no clock changes and nothing is left out. Pure."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from shared.bounds import in_zone
from shared.schedule_protocol import Doubt, Named
from shared.zones import UTC_NAME

if TYPE_CHECKING:
    from shared.schedule import Cron


class InUtc(ABC):
    """A schedule that follows no zone's clocks, and whose instants are all due."""

    __slots__ = ()

    @property
    def zone(self) -> str:
        """UTC."""
        return UTC_NAME

    @property
    def clocks(self) -> "Cron | None":
        """None: it follows no zone's clocks."""
        return None

    @abstractmethod
    def instants(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Give the due instants after `after`, up to and including `until`, both aware.

        Raises:
            ValueError: one of the two has no zone.
        """

    def named(self, after: datetime, until: datetime) -> Iterator[Named]:
        """Give the due instants of `instants`: nothing is left out."""
        return (Named(instant) for instant in self.instants(after, until))

    def local(self, instant: datetime) -> datetime:
        """Give an aware instant in UTC.

        Raises:
            ValueError: `instant` has no zone.
        """
        return in_zone(instant, UTC)

    def warnings(self) -> list[Doubt]:
        """Give none."""
        return []
