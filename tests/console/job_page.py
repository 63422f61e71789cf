"""The page of a job as a person reads it, and jobs with a past for it to show."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from justhtml import JustHTML

from shared.definition import definition_of, fingerprint
from shared.job import Job
from shared.postgres import Session
from tests.console.reading import said_by
from tests.console.serving import Served


@dataclass(frozen=True, slots=True)
class JobPage:
    """What was answered: `html` as it is, and the main part of it."""

    html: str
    main: Any

    @property
    def text(self) -> str:
        """Everything that it says, with single spaces."""
        return said_by(self.main)

    def one(self, selector: str) -> Any:
        """Give the only element of that kind."""
        (found,) = self.main.query(selector)
        return found

    def rows(self, heading: str) -> list[list[str]]:
        """Give the cells of the table under the heading of this id."""
        region = self.one(f'[role="region"][aria-labelledby="{heading}"]')
        return [[said_by(cell) for cell in row.query("th, td")] for row in region.query("tbody tr")]

    def numbers(self, chart: str) -> list[list[str]]:
        """Give the cells of a chart's table."""
        return [
            [said_by(cell) for cell in row.query("th, td")] for row in self.main.query(f"#{chart} details tbody tr")
        ]

    def cells(self) -> list[tuple[str, str]]:
        """Give letter and link of each cell of the strip."""
        return [(said_by(cell), str((cell.attrs or {}).get("href", ""))) for cell in self.main.query(".strip .cell")]

    def link(self, told: str) -> str | None:
        """Give where the first link of this text leads, None without one."""
        return next((str(one.attrs["href"]) for one in self.main.query("a[href]") if said_by(one) == told), None)


async def job_page(console: Served, path: str, status: int = 200) -> JobPage:
    """Ask for a page of a job."""
    answer = await console.get(path if path.startswith("/") else f"/jobs/{path}")
    assert answer.status == status, answer.text
    (main,) = JustHTML(answer.text, sanitize=False).query("main")
    return JobPage(answer.text, main)


async def revise(session: Session, job: Job, definition: dict[str, Any] | None = None) -> None:
    """Give a known job its next definition, as a trigger of a later deploy would."""
    given = definition or definition_of(job)
    await session.execute(
        """with revised as (
               update matins.job set revision = revision + 1, definition = $2, fingerprint = $3 where name = $1
               returning name, revision)
           insert into matins.job_revision (job, revision, definition, fingerprint, effective_from, recorded_by)
           select name, revision, $2, $3, clock_timestamp(), 'trigger-2' from revised""",
        job.name,
        given,
        fingerprint(given),
    )


async def worker_runs(session: Session, job: Job, workers: Sequence[str], instants: Sequence[datetime]) -> None:
    """Record that each worker has run its own occurrence at each instant."""
    for instant in instants:
        for worker in workers:
            await session.execute(
                """insert into matins.occurrence (job, scheduled_at, due_at, variant, state, revision, window_since,
                       window_until, tzdata_version, epoch, claimed_by, claimed_at, opened_at, sealed_at, closed_at,
                       accounts_read, total, succeeded, failed, dead, cancelled, report)
                   values ($1, $2, $2, '@' || $3, 'succeeded', 1, $2, $2, 'test', 1, $3, $4, $4, $4,
                           $4::timestamptz + interval '2 seconds', 1, 1, 1, 0, 0, 0, '{}')""",
                job.name,
                instant,
                worker,
                instant + timedelta(seconds=1),
            )
