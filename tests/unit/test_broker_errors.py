"""What the driver throws into those who wait on a connection that died is news about the broker, and ends no task."""

import asyncio

import pytest
from aio_pika.exceptions import ChannelInvalidStateError
from aiormq.abc import ExceptionType
from aiormq.base import FutureStore

from shared.broker_errors import ANY_ERROR, raise_unless_of_the_driver, said


async def thrown_at_a_waiting_call(reason: ExceptionType | None) -> BaseException:
    """Have the driver give up a call for a reason, as it does when its channel closes."""
    store = FutureStore(asyncio.get_running_loop())
    call = store.create_task(asyncio.Event().wait())
    rejecting = store.reject_all(reason)
    try:
        await call
    except ANY_ERROR as error:
        await rejecting
        return error
    raise AssertionError("the call has been answered")


@pytest.mark.parametrize("reason", [None, asyncio.CancelledError, ChannelInvalidStateError, ConnectionResetError])
async def test_a_call_given_up_by_the_driver_is_a_lost_channel(reason: ExceptionType | None) -> None:
    error = await thrown_at_a_waiting_call(reason)
    raise_unless_of_the_driver(error)
    assert "Exception" not in said(error)


async def test_what_is_no_news_about_the_broker_goes_on() -> None:
    with pytest.raises(ValueError, match="ours"):
        raise_unless_of_the_driver(ValueError("ours"))
    raise_unless_of_the_driver(ValueError("expected here"), ValueError)


async def test_a_task_that_is_to_end_ends() -> None:
    async def wait() -> None:
        try:
            await asyncio.Event().wait()
        except ANY_ERROR as error:
            raise_unless_of_the_driver(error)

    async with asyncio.TaskGroup() as group:
        task = group.create_task(wait())
        await asyncio.sleep(0)
        task.cancel()
    assert task.cancelled()
