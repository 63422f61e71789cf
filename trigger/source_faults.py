"""What an author's source raises, told apart from what ends this process's own work, and put into words."""

import asyncio
import math

import anyio

from shared.masking import mask, text_of

LONGEST_DESCRIPTION = 2000


def is_ours(error: BaseException) -> bool:
    """Tell whether what came out of an author's code is a demand on the task that called it.

    A source's own CancelledError, SystemExit or KeyboardInterrupt is only its failure: signals are taken elsewhere.
    """
    if isinstance(error, asyncio.CancelledError):
        return is_cancelled()
    return isinstance(error, GeneratorExit)


def is_cancelled() -> bool:
    """Tell whether a scope around the caller is cancelled; a source that cancels its own task leaves none."""
    return anyio.current_effective_deadline() == -math.inf


def forgive_cancelling(requests: int) -> None:
    """Take back the requests beyond `requests` by which a source has cancelled the task that reads it."""
    task = asyncio.current_task()
    while task is not None and task.cancelling() > requests:
        task.uncancel()


def cancel_requests() -> int:
    """Give how many requests to cancel it the current task counts."""
    task = asyncio.current_task()
    return 0 if task is None else task.cancelling()


def described(error: BaseException) -> str:
    """Give an error's class and text, without secrets, fit for a table and for one line of a log."""
    told = f"{type(error).__name__}: {text_of(error)}"[: 4 * LONGEST_DESCRIPTION]
    told = mask(told).replace("\0", "")[:LONGEST_DESCRIPTION]
    return told.encode(errors="replace").decode()
