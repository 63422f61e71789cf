"""What goes wrong between this process and RabbitMQ, and what of it is only news about the broker."""

import asyncio

from aio_pika.exceptions import AMQPError, ChannelInvalidStateError

from shared.errors import MatinsError

DRIVER_ERRORS = (AMQPError, ChannelInvalidStateError, OSError)
"""What a call raises when the broker refuses it or is gone; OSError covers TimeoutError."""

ANY_ERROR = (Exception, asyncio.CancelledError)
"""What is caught around a call of the driver, for `raise_unless_of_the_driver` to tell apart."""


class BrokerUnavailable(MatinsError):
    """The broker cannot be used; the message says where and why, and never holds the password."""


class BrokerRefuses(BrokerUnavailable):
    """The broker is there and lets this user or this virtual host in as little as ever: waiting alone mends nothing."""


def said(error: BaseException | None) -> str:
    """Give what the broker, or the driver, says about an error."""
    if error is None:
        return "closed"
    if isinstance(error, TimeoutError):
        return "no answer in time"
    if isinstance(error, ChannelInvalidStateError) or type(error) is Exception:
        return "the channel is closed"
    if isinstance(error, asyncio.CancelledError):
        return "it went silent"
    text = [argument for argument in error.args if isinstance(argument, str) and argument]
    return text[-1] if text else type(error).__name__


def raise_unless_of_the_driver(error: BaseException, *others: type[Exception]) -> None:
    """Raise again what a call of the driver raised, unless it is news about the broker, or one of `others`.

    The driver throws CancelledError, or an Exception of no kind, into whoever waits on a connection that died. That
    must not end the task; a task that is really to be cancelled counts at least one request.
    """
    if isinstance(error, asyncio.CancelledError):
        task = asyncio.current_task()
        if task is None or task.cancelling():
            raise error
    elif type(error) is not Exception and not isinstance(error, (*DRIVER_ERRORS, *others)):
        raise error
