"""The example's own settings, read from the environment when they are needed.

- MATINS_EXAMPLE_SCHEDULE: cron text in UTC for all three jobs (by default `0 2 * * *`); a demonstration lets the night
  come in a minute.
- MATINS_EXAMPLE_PAYMENTS_URL: where the payment provider answers.
- MATINS_EXAMPLE_ROLES: `yes` gives each job a database role of its own; `roles.sql` makes them.
- MATINS_EXAMPLE_SLOW_SECONDS: how long a slow account takes (by default 1).
"""

from os import environ  # noqa: TID251 - the example's own settings: shared.settings knows the product's alone
from urllib.parse import SplitResult, urlsplit

from shared.errors import MatinsError


class NoPaymentsUrl(MatinsError):
    """MATINS_EXAMPLE_PAYMENTS_URL is not an address such as http://127.0.0.1:8080."""


def schedule() -> str:
    """Give the cron text of the jobs."""
    return environ.get("MATINS_EXAMPLE_SCHEDULE") or "0 2 * * *"


def role(name: str) -> str | None:
    """Give the name of a job's role, if the jobs are to have some."""
    return name if environ.get("MATINS_EXAMPLE_ROLES") == "yes" else None


def payments_url() -> SplitResult:
    """Give the payment provider's address, its scheme http or https. Raises NoPaymentsUrl."""
    address = urlsplit(environ.get("MATINS_EXAMPLE_PAYMENTS_URL", ""))
    if address.scheme not in {"http", "https"} or not address.hostname:
        raise NoPaymentsUrl
    return address


def slow_seconds() -> float:
    """Give how long a slow account takes, in seconds."""
    return float(environ.get("MATINS_EXAMPLE_SLOW_SECONDS") or 1)
