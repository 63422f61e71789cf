"""How often something may happen: a bucket that holds some tokens and fills up again at a steady rate. Pure."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(slots=True)
class _Bucket:
    left: float
    at: float


class Rate:
    """At most `most` at once for each name, and `most` again over every `seconds`."""

    def __init__(self, most: int, seconds: float, monotonic: Callable[[], float]) -> None:
        self._most = most
        self._seconds = seconds
        self._monotonic = monotonic
        self._buckets: dict[str, _Bucket] = {}

    def wait(self, name: str, most: int | None = None) -> float:
        """Take one for `name`: give 0, or the seconds after which there is one again. Names must be few and known."""
        limit, now = most or self._most, self._monotonic()
        bucket = self._buckets.setdefault(name, _Bucket(limit, now))
        bucket.left = min(float(limit), bucket.left + (now - bucket.at) * limit / self._seconds)
        bucket.at = now
        if bucket.left >= 1:
            bucket.left -= 1
            return 0.0
        return (1 - bucket.left) * self._seconds / limit
