from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shared.schedule import Cron
from trigger.replan import Planned, beyond_plan, compared_instants, mutually_nearest, nearest, replan

DAY = timedelta(days=1)
AHEAD = timedelta(hours=49)
MIDNIGHT = datetime(2026, 8, 25, tzinfo=UTC)


def at(clock: str, day: int = 25) -> datetime:
    hour, minute = clock.split(":")
    return datetime(2026, 8, day, int(hour), int(minute), tzinfo=UTC)


def nightly(clock: str) -> Cron:
    hour, minute = clock.split(":")
    return Cron(f"{int(minute)} {int(hour)} * * *")


@dataclass
class Plan:
    """The rows of one job as the database would hold them: what runs, and what becomes of each change."""

    schedule: Cron
    now: datetime
    through: datetime
    states: dict[datetime, str] = field(default_factory=dict)
    ran: list[datetime] = field(default_factory=list)

    def plan(self) -> None:
        until = max(self.now + AHEAD, self.schedule.next_after(self.now))
        for instant in self.schedule.instants(self.through, until):
            if instant not in self.states or (self.states[instant] == "superseded" and instant > self.now):
                self.states[instant] = "expected"
        self.through = max(self.through, until)

    def run(self, now: datetime, *, claims: bool = True) -> None:
        """Let time pass; with `claims` a trigger is up and claims everything due at once."""
        self.now = now
        self.plan()
        for instant in sorted(self.states):
            if claims and instant <= now and self.states[instant] == "expected":
                self.states[instant] = "claimed"
                self.ran.append(instant)

    def change(self, schedule: Cron) -> None:
        if self.schedule.definition() == schedule.definition():
            return
        self.plan()
        now = self.now
        until = max(now + AHEAD, schedule.next_after(now))
        rows = [
            Planned(instant, state == "expected", state == "claimed")
            for instant, state in self.states.items()
            if state != "superseded"
        ]
        past = sorted((one for one in rows if one.scheduled_at <= now), key=lambda one: one.scheduled_at)
        old = past[-1:] + [one for one in rows if one.scheduled_at > now]
        old += beyond_plan(self.schedule, max(self.through, now), schedule.next_after(now))
        old.sort(key=lambda one: one.scheduled_at)
        replanned = replan(old, compared_instants(schedule, old, now, until), now, until)
        for instant in replanned.superseded:
            assert self.states[instant] == "expected"
            self.states[instant] = "superseded"
        for instant in replanned.refused:
            self.states.setdefault(instant, "superseded")
        for instant in replanned.expected:
            if self.states.get(instant) in (None, "superseded"):
                self.states[instant] = "expected"
        self.schedule, self.through = schedule, until

    def on(self, day: int) -> list[str]:
        return [f"{instant:%H:%M}" for instant in sorted(self.ran) if instant.day == day]


def planned_on(schedule: Cron, now: datetime) -> Plan:
    plan = Plan(schedule, now, now)
    plan.plan()
    return plan


@pytest.mark.parametrize(
    ("changed_at", "before", "after", "runs"),
    [
        ("01:30", "02:00", "03:00", ["03:00"]),
        ("02:30", "02:00", "03:00", ["02:00"]),
        ("03:30", "02:00", "03:00", ["02:00"]),
        ("00:30", "02:00", "01:00", ["01:00"]),
        ("01:30", "02:00", "01:00", ["02:00"]),
        ("02:30", "02:00", "01:00", ["02:00"]),
    ],
)
def test_a_moved_job_runs_once_that_night(changed_at: str, before: str, after: str, runs: list[str]) -> None:
    plan = planned_on(nightly(before), at("12:00", 23))
    plan.run(at(changed_at))
    plan.change(nightly(after))
    plan.run(at("12:00", 26))
    assert plan.on(24) == [before]
    assert plan.on(25) == runs
    assert plan.on(26) == [after]


def test_a_deploy_that_is_rolled_back_runs_once() -> None:
    plan = planned_on(nightly("02:00"), at("12:00", 24))
    for moment, clock in (("01:00", "03:00"), ("01:20", "02:00"), ("01:40", "03:00"), ("02:10", "02:00")):
        plan.run(at(moment))
        plan.change(nightly(clock))
    plan.run(at("12:00", 26))
    assert plan.on(25) == ["03:00"]
    assert plan.on(26) == ["02:00"]


def test_a_night_that_was_claimed_is_refused_to_every_later_change() -> None:
    plan = planned_on(nightly("02:00"), at("12:00", 24))
    for moment, clock in (("02:10", "03:00"), ("02:20", "02:50"), ("02:30", "04:00"), ("02:40", "02:00")):
        plan.run(at(moment))
        plan.change(nightly(clock))
    plan.run(at("12:00"))
    assert plan.on(25) == ["02:00"]


def test_what_is_due_and_unclaimed_moves_to_its_new_time() -> None:
    plan = planned_on(nightly("02:00"), at("12:00", 24))
    plan.run(at("02:30"), claims=False)
    plan.change(nightly("03:00"))
    plan.run(at("12:00"))
    assert plan.on(25) == ["03:00"]


def test_what_is_due_and_unclaimed_stays_if_its_new_time_has_passed() -> None:
    plan = planned_on(nightly("02:00"), at("12:00", 24))
    plan.run(at("02:30"), claims=False)
    plan.change(nightly("01:00"))
    plan.run(at("12:00"))
    assert plan.on(25) == ["02:00"]


def test_more_often_and_less_often_keep_the_instants_that_both_have() -> None:
    plan = planned_on(nightly("02:00"), at("12:00", 24))
    plan.run(at("02:30"))
    plan.change(Cron("0 * * * *"))
    plan.run(at("04:10"))
    assert plan.on(25) == ["02:00", "03:00", "04:00"]
    plan.change(nightly("06:00"))
    plan.run(at("12:00"))
    assert plan.on(25) == ["02:00", "03:00", "04:00", "06:00"]
    plan.change(Cron("0 0 1 * *"))
    plan.run(at("12:00", 31))
    assert plan.on(26) == []


@pytest.mark.parametrize("rare", ["0 2 * * 0", "0 2 1 1 *"])
def test_what_was_planned_far_ahead_hides_no_night_of_a_new_schedule(rare: str) -> None:
    plan = planned_on(Cron(rare), at("12:00", 17))
    plan.change(nightly("02:00"))
    for day in range(18, 28):
        plan.run(at("02:00", day))
    assert [plan.on(day) for day in range(18, 28)] == [["02:00"]] * 10
    plan.change(Cron(rare))
    for day in range(28, 30):
        plan.run(at("02:00", day))
    assert plan.on(28) + plan.on(29) == []


def test_a_new_job_changed_at_once_still_runs_that_night() -> None:
    plan = planned_on(nightly("02:00"), at("02:30"))
    plan.run(at("02:40"))
    plan.change(nightly("03:00"))
    plan.run(at("12:00"))
    assert plan.on(25) == ["03:00"]


CLOCKS = st.integers(min_value=0, max_value=6 * 60 - 1).map(lambda minute: f"{minute // 60:02d}:{minute % 60:02d}")
EVENTS = st.lists(st.tuples(st.integers(min_value=1, max_value=600), st.none() | CLOCKS, st.booleans()), max_size=25)


@settings(max_examples=300, deadline=None)
@given(first=CLOCKS, events=EVENTS)
def test_whatever_the_order_of_changes_no_night_runs_twice(
    first: str, events: list[tuple[int, str | None, bool]]
) -> None:
    plan = planned_on(nightly(first), MIDNIGHT - DAY / 2)
    for minutes, clock, claims in events:
        plan.run(plan.now + timedelta(minutes=minutes), claims=claims)
        if clock is not None:
            plan.change(nightly(clock))
    plan.run(plan.now + 2 * DAY)
    nights = [instant.date() for instant in plan.ran]
    assert len(nights) == len(set(nights))


@settings(max_examples=300, deadline=None)
@given(first=CLOCKS, events=EVENTS)
def test_while_a_trigger_is_up_every_night_runs(first: str, events: list[tuple[int, str | None, bool]]) -> None:
    plan = planned_on(nightly(first), MIDNIGHT - DAY / 2)
    for minutes, clock, _ in events:
        plan.run(plan.now + timedelta(minutes=minutes))
        if clock is not None:
            plan.change(nightly(clock))
    plan.run(plan.now + 2 * DAY)
    nights = {instant.date() for instant in plan.ran}
    every = {(MIDNIGHT + number * DAY).date() for number in range((plan.now - MIDNIGHT).days)}
    assert every <= nights


@settings(deadline=None)
@given(
    st.lists(st.integers(0, 500), unique=True, max_size=30).map(sorted),
    st.lists(st.integers(0, 500), unique=True, max_size=30).map(sorted),
)
def test_partners_are_each_others_nearest(old_minutes: list[int], new_minutes: list[int]) -> None:
    old = [MIDNIGHT + timedelta(minutes=one) for one in old_minutes]
    new = [MIDNIGHT + timedelta(minutes=one) for one in new_minutes]
    pairs = mutually_nearest(old, new)
    assert len(set(pairs.values())) == len(pairs)
    for one, other in pairs.items():
        assert other == min(new, key=lambda it, one=one: (abs(it - one), it))  # type: ignore[misc] # bound for the loop
        assert one == min(old, key=lambda it, other=other: (abs(it - other), it))  # type: ignore[misc] # bound too
    assert nearest(MIDNIGHT, []) is None
