"""What the example's payment provider knows: which keys it has seen, what it charged, and how it was told to behave.

The effect is one step under one lock: the first call with a key makes the charge, every later one with the same body
gets the same receipt, and one with another body is a conflict. Refusals are not remembered: a key may be tried again.
"""

import threading
from collections import Counter
from dataclasses import dataclass, field, fields

EVERY_ACCOUNT = "*"


@dataclass(frozen=True, slots=True)
class Behaviour:
    """What to do to the calls for one account: hold, delay or answer `status`, before the charge or after it.

    `times` is how many calls meet it (0: all). With `after_effect` the charge is made and its answer is held, late or
    lost, which is when a key matters. `hold` lasts until the account gets another behaviour.
    """

    delay_seconds: float = 0.0
    status: int = 0
    retry_after: int = 0
    times: int = 0
    hold: bool = False
    after_effect: bool = False

    def __post_init__(self) -> None:
        """Raise ValueError for what cannot be done."""
        if not all(
            isinstance(getattr(self, one.name), int | float) and getattr(self, one.name) >= 0 for one in fields(self)
        ):
            raise ValueError("every field is a number that is not negative, or true or false")
        if self.status and self.status not in range(400, 600):
            raise ValueError("status is from 400 to 599")


@dataclass(frozen=True, slots=True)
class Answer:
    """An HTTP status, a JSON object, and further headers."""

    status: int
    body: dict[str, object]
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(slots=True)
class _Charge:
    body: dict[str, str]
    receipt: str
    replays: int = 0


class Provider:
    """A payment provider in memory, for any number of threads."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._charges: dict[str, _Charge] = {}
        self._calls: Counter[str] = Counter()
        self._answers: Counter[int] = Counter()
        self._behaviours: dict[str, Behaviour] = {}
        self._met: Counter[str] = Counter()
        self._waiting = 0
        self._closed = False

    def behave(self, account: str, behaviour: Behaviour) -> None:
        """Treat the coming calls for an account so; EVERY_ACCOUNT stands for all without one of their own."""
        with self._changed:
            self._behaviours[account] = behaviour
            self._met[account] = 0
            self._changed.notify_all()

    def close(self) -> None:
        """Let every held and delayed call go on."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wait_for_held(self, count: int, timeout_seconds: float) -> bool:
        """Wait until `count` calls are held or delayed; give whether that came about in time."""
        with self._changed:
            return self._changed.wait_for(lambda: self._waiting >= count, timeout_seconds)

    def charge(self, key: str, body: dict[str, str]) -> Answer:
        """Charge `body["account"]` once for the key."""
        with self._changed:
            self._calls[key] += 1
            behaviour = self._next_behaviour(body["account"])
            if not behaviour.after_effect:
                answer = self._hindered(body["account"], behaviour) or self._effect(key, body)
            else:
                made = self._effect(key, body)
                answer = self._hindered(body["account"], behaviour) or made
            self._answers[answer.status] += 1
            return answer

    def counts(self) -> dict[str, object]:
        """Give the calls, effects and replays, in all and for each key, and how often each status was answered."""
        with self._changed:
            return {
                "calls": self._calls.total(),
                "effects": len(self._charges),
                "replays": sum(charge.replays for charge in self._charges.values()),
                "held": self._waiting,
                "answers": {str(status): count for status, count in sorted(self._answers.items())},
                "keys": {key: self._count(key, calls) for key, calls in self._calls.items()},
            }

    def _count(self, key: str, calls: int) -> dict[str, object]:
        charge = self._charges.get(key)
        if charge is None:
            return {"calls": calls, "effects": 0, "replays": 0}
        return {"calls": calls, "effects": 1, "replays": charge.replays, "receipt": charge.receipt, **charge.body}

    def _next_behaviour(self, account: str) -> Behaviour:
        name = account if account in self._behaviours else EVERY_ACCOUNT
        behaviour = self._behaviours.get(name, Behaviour())
        self._met[name] += 1
        return Behaviour() if 0 < behaviour.times < self._met[name] else behaviour

    def _hindered(self, account: str, behaviour: Behaviour) -> Answer | None:
        """Wait as told, without the lock, and give the answer that stands for the charge's own, if any."""
        if behaviour.hold or behaviour.delay_seconds:
            self._waiting += 1
            self._changed.notify_all()
            self._changed.wait_for(
                lambda: self._closed or self._told_otherwise(account, behaviour),
                None if behaviour.hold else behaviour.delay_seconds,
            )
            self._waiting -= 1
        if not behaviour.status:
            return None
        headers = {"Retry-After": str(behaviour.retry_after)} if behaviour.retry_after else {}
        return Answer(behaviour.status, {"error": f"told to answer {behaviour.status}"}, headers)

    def _told_otherwise(self, account: str, behaviour: Behaviour) -> bool:
        return behaviour not in (self._behaviours.get(account), self._behaviours.get(EVERY_ACCOUNT))

    def _effect(self, key: str, body: dict[str, str]) -> Answer:
        charge = self._charges.get(key)
        if charge is None:
            charge = self._charges[key] = _Charge(body, f"receipt-{len(self._charges) + 1:06d}")
            return Answer(201, {"receipt": charge.receipt, **body})
        if charge.body != body:
            return Answer(409, {"error": "this key was used with another body"})
        charge.replays += 1
        return Answer(200, {"receipt": charge.receipt, **body}, {"Idempotent-Replay": "true"})
