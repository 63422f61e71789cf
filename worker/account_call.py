"""What a job's code is called with, in a transaction: for an account, or in its own worker."""

from typing import Any

from shared.calls import AccountCall, idempotency_key
from shared.every_worker import EveryWorker, WorkerCall
from shared.job import Job
from shared.postgres import Row
from worker.occurrences import WorkOccurrence


def call_of(job: Job, occurrence: WorkOccurrence, row: Row, lent: Any) -> AccountCall | WorkerCall:
    """Give the call for one ledger row, with the connection that is lent for it."""
    identity, window, account = occurrence.identity, occurrence.window, row["account"]
    if isinstance(job.handler, EveryWorker):
        return WorkerCall(identity, window, account, lent)
    key = idempotency_key(identity, account, salt=row["key_salt"])
    return AccountCall(identity, window, account, row["attempts"] + 1, key, lent)
