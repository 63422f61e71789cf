"""The jobs of a billing company, as an author declares them: MATINS_JOBS=examples.billing.jobs."""

from examples.billing.invoices import invoice
from examples.billing.settings import role, schedule
from examples.billing.usage import roll_up
from shared.job import (
    Backoff,
    Cron,
    Decisions,
    Job,
    Outside,
    PerAccount,
    SetBased,
    SqlAccounts,
    hours,
    minutes,
    seconds,
)
from shared.sql_files import statement

NIGHT = Cron(schedule(), zone="UTC")
NIGHTLY = Decisions(
    catch_up="latest",
    catch_up_within=hours(24),
    overlap="skip",
    start_within=minutes(10),
    finish_within=hours(3),
)
INVOICE, USAGE = role("job_invoice"), role("job_usage")
DUE = SqlAccounts(statement("examples.billing", "due"), role=INVOICE)
USED = SqlAccounts(statement("examples.billing", "used"), role=USAGE)
SOON = Backoff(first=seconds(1), limit=minutes(5))

jobs = [
    Job(
        "invoice-run",
        schedule=NIGHT,
        accounts=DUE,
        handler=PerAccount(invoice, role=INVOICE),
        decisions=NIGHTLY,
        backoff=SOON,
        description="Issues an invoice for every account whose billing period closed.",
    ),
    Job(
        "usage-rollup",
        schedule=NIGHT,
        accounts=USED,
        handler=SetBased(roll_up, role=USAGE, chunk_size=100),
        decisions=NIGHTLY,
        backoff=SOON,
        description="Adds the day's usage of every account to its total of the billing period.",
    ),
    Job(
        "charge",
        schedule=NIGHT,
        accounts=DUE,
        handler=Outside("examples.billing.charges:charge", key_valid_for=hours(24)),
        decisions=NIGHTLY,
        backoff=SOON,
        description="Charges every account whose billing period closed, through the payment provider.",
    ),
]
