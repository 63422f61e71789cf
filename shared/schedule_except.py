"""A schedule with days that are left out. Pure.

What is left out is still named, with what leaves it out, and the planner writes it down: nothing that a schedule says
is silently absent.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import TYPE_CHECKING, Any

from shared.bounds import ANY_YEAR, check_keys, in_zone
from shared.declaration import Fault, keep_faults
from shared.errors import DeclarationError
from shared.exclusions import Between, Calendar, Dates, Exclusion, Weekdays, exclusion_of
from shared.explained import UNDECIDED, explain_mistakes
from shared.placing import offsets_around
from shared.schedule import Cron
from shared.schedule_every import Every
from shared.schedule_instants import Instants
from shared.schedule_protocol import Doubt, Named, Schedule
from shared.zones import UTC_NAME, find_zone

if TYPE_CHECKING:
    from datetime import tzinfo

_FARTHEST = timedelta(days=60 * 366)
_DAY = timedelta(days=1)
_SECOND = timedelta(seconds=1)
_KINDS = (Weekdays, Dates, Between, Calendar)
_SCHEDULES = (Cron, Every, Instants)
_VALID = 'a list of Weekdays(["sat", "sun"]), Dates([…]), Between(first, last), Calendar(name, […])'


@explain_mistakes
@dataclass(frozen=True, slots=True)
class Except:
    """A schedule such as `Except(Cron("0 2 * * *"), [Weekdays(["sat", "sun"]), read_calendar("holidays.txt")])`.

    An instant is left out when its date is, by the clocks of `zone`: that of a Cron, and UTC for other schedules,
    unless another zone is given for them.
    """

    schedule: Schedule
    exclude: Sequence[Exclusion]
    zone: str = ""
    faults: tuple[Fault, ...] = field(default=(), init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Gather the faults of the parts, and see that something is left to run."""
        faults = [*_schedule_faults(self.schedule), *_exclusion_faults(self.exclude)]
        if not faults:
            object.__setattr__(self, "exclude", tuple(self.exclude))
            faults += self._zone_faults()
            object.__setattr__(self, "zone", self.zone or self.schedule.zone)
        if not faults and self.next_after(self._first()) is None:
            faults.append(
                Fault("schedule", "never fires: every day on which it would be due is left out", "fewer days")
            )
        keep_faults(self, tuple(faults))

    def _zone_faults(self) -> list[Fault]:
        if not self.zone:
            return []
        if isinstance(self.schedule, Cron) and self.zone != self.schedule.zone:
            return [Fault("zone", f"is {self.zone!r}, and the schedule has its own", self.schedule.zone)]
        try:
            find_zone(self.zone)
        except DeclarationError as error:
            return [Fault(fault.place, fault.problem, fault.valid or "") for fault in error.faults]
        return []

    def _first(self) -> datetime:
        """Give an instant before the first one of a schedule that has a first one."""
        if isinstance(self.schedule, Instants):
            return next(iter(self.schedule.instants(datetime.min.replace(tzinfo=UTC), ANY_YEAR)), ANY_YEAR) - _SECOND
        return ANY_YEAR

    @property
    def clocks(self) -> Cron | None:
        """What clocks move about in the schedule, or None."""
        return self.schedule.clocks

    @property
    def description(self) -> str:
        """The schedule, and what is left out."""
        told = [_told(one) for one in self.exclude]
        return f"{self.schedule.description} except {', '.join(told)}"

    def named(self, after: datetime, until: datetime) -> Iterator[Named]:
        """Give every instant of the schedule in the window, and what leaves it out."""
        return (Named(instant, self._left_out(instant)) for instant in self.schedule.instants(after, until))

    def instants(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """Give the instants that nothing leaves out.

        Raises:
            ValueError: one of the two has no zone.
        """
        return (named.instant for named in self.named(after, until) if not named.left_out)

    def next_after(self, after: datetime) -> datetime | None:
        """Give the first instant after `after` that nothing leaves out, or None if there is none within 60 years."""
        found = self.schedule.next_after(after)
        while found is not None and self._left_out(found):
            if found - after > _FARTHEST:
                return None
            day = self._open_day(self.local(found).date(), _DAY)
            # Never behind that day's first instant, and at times before it, when clocks change: then once more.
            _, greatest = offsets_around(_midnight(day), self._tzinfo)
            found = self.schedule.next_after(max(found, _midnight(day) - greatest - _SECOND))
        return found

    def previous_before(self, before: datetime) -> datetime | None:
        """Give the last instant before `before` that nothing leaves out, or None if there is none within 60 years."""
        found = self.schedule.previous_before(before)
        while found is not None and self._left_out(found):
            if before - found > _FARTHEST:
                return None
            day = self._open_day(self.local(found).date(), -_DAY) + _DAY
            least, _ = offsets_around(_midnight(day), self._tzinfo)
            found = self.schedule.previous_before(min(found, _midnight(day) - least))
        return found

    def local(self, instant: datetime) -> datetime:
        """Give an aware instant as the zone's clocks show it.

        Raises:
            ValueError: `instant` has no zone.
        """
        return in_zone(instant, self._tzinfo)

    def warnings(self) -> list[Doubt]:
        """Say what the schedule itself warns of."""
        return self.schedule.warnings()

    def definition(self) -> dict[str, Any]:
        """Give the canonical form, for JSON. Keys: `kind`, `schedule`, `exclude`, `zone`."""
        return {
            "kind": "except",
            "schedule": self.schedule.definition(),
            "exclude": [one.definition() for one in self.exclude],
            "zone": self.zone,
        }

    def _left_out(self, instant: datetime) -> str:
        day = self.local(instant).date()
        return next((told for one in self.exclude if (told := one.leaves_out(day))), "")

    def _open_day(self, day: date, step: timedelta) -> date:
        """Give the next day in the direction of `step` that nothing leaves out, or one beyond what is searched."""
        for _ in range(_FARTHEST.days):
            day += step
            if not any(one.leaves_out(day) for one in self.exclude):
                break
        return day

    @property
    def _tzinfo(self) -> "tzinfo":
        return UTC if self.zone == UTC_NAME else find_zone(self.zone)


def except_of(definition: Mapping[str, Any], schedule: Schedule) -> Except:
    """Make the schedule that a definition describes, around the one that it holds.

    Raises:
        DeclarationError: a key is missing or not known.
        FaultyDeclaration: a value is not usable.
    """
    check_keys(definition, ("exclude", "kind", "schedule", "zone"))
    return Except(schedule, [exclusion_of(one) for one in definition["exclude"]], definition["zone"])


def _schedule_faults(schedule: object) -> list[Fault]:
    if isinstance(schedule, _SCHEDULES):
        return list(schedule.faults)
    told = "is left out" if schedule is UNDECIDED else f"is {schedule!r}"
    return [Fault("schedule", told, "Cron(…), Every(…) or Instants(…); every exclusion in one list")]


def _exclusion_faults(exclude: object) -> list[Fault]:
    if not isinstance(exclude, Sequence) or isinstance(exclude, str) or not exclude:
        told = "is left out" if exclude is UNDECIDED else f"is {exclude!r}"
        return [Fault("exclude", told, _VALID)]
    faults: list[Fault] = []
    for one in exclude:
        if isinstance(one, _KINDS):
            faults += [fault.within("exclude") for fault in one.faults]
        else:
            faults.append(Fault("exclude", f"holds {one!r}", _VALID))
    return faults


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time(), UTC)


def _told(exclusion: Exclusion) -> str:
    match exclusion:
        case Weekdays():
            return ", ".join(exclusion.names)
        case Calendar():
            return f"calendar {exclusion.name}"
        case Between():
            return f"{exclusion.first} to {exclusion.last}"
    return f"{len(exclusion.definition()['days'])} dates"
