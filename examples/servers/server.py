"""What every server here can do, wherever it comes from."""

import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Self

POLL_SECONDS = 0.02


class ServerUnavailableError(RuntimeError):
    """A server is missing, ended by itself, or didn't answer in time; the message says what to do."""


class Server(ABC):
    """A server with an address that stays the same through restarts. As a context manager it is running, then gone."""

    @abstractmethod
    def start(self) -> None:
        """Start on the kept data and return when it answers; raises ServerUnavailableError."""

    @abstractmethod
    def stop(self) -> None:
        """End it in order; the data stay. Nothing happens when it isn't running."""

    @abstractmethod
    def kill(self) -> None:
        """End all its processes with SIGKILL; the data stay as they are at that moment."""

    @abstractmethod
    def pause(self) -> None:
        """Freeze all its processes: connections stay open and nothing answers."""

    @abstractmethod
    def resume(self) -> None:
        """Let paused processes go on."""

    @abstractmethod
    def delete(self) -> None:
        """End it and remove its data."""

    @property
    @abstractmethod
    def url(self) -> str:
        """The address for clients, with its user and password."""

    def restart(self) -> None:
        """Stop in order and start again."""
        self.stop()
        self.start()

    def __enter__(self) -> Self:
        """Start."""
        try:
            self.start()
        except BaseException:
            self.delete()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        """End and remove the data."""
        self.delete()


class DatabaseServer(Server):
    """A PostgreSQL server; `url` is an administrator's address of the database `postgres`."""

    @abstractmethod
    def stop_at_once(self) -> None:
        """Stop in PostgreSQL's immediate mode: no session ends in order, and the next start recovers."""

    @abstractmethod
    def kill_backend(self, process_id: int) -> None:
        """End one backend with SIGKILL; the server then ends every session and recovers by itself."""


class BrokerServer(Server):
    """A RabbitMQ server; `url` is an administrator's address of the default virtual host."""

    @property
    @abstractmethod
    def management_url(self) -> str:
        """The address of the management interface, with its user and password, without a path."""

    @property
    @abstractmethod
    def metrics_address(self) -> str:
        """Host and port at which it tells metrics for Prometheus, if it was started to tell them."""

    @property
    @abstractmethod
    def tls_port(self) -> int:
        """A port of this machine that is kept for TLS: clients reach there what listens at `tls_listener`."""

    @property
    @abstractmethod
    def tls_listener(self) -> tuple[str, int]:
        """The address and port at which the broker may be told to listen for TLS; it doesn't by itself."""

    @abstractmethod
    def control(self, *arguments: str) -> None:
        """Run rabbitmqctl on it; raises ServerUnavailableError with what it said if it failed."""

    @abstractmethod
    def wipe(self) -> None:
        """End it, lose all its data, and start it empty at the same address."""


def wait_until(condition: Callable[[], bool], seconds: float, otherwise: Callable[[], str]) -> None:
    """Return once `condition` holds; raises ServerUnavailableError with `otherwise()` after `seconds`."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise ServerUnavailableError(otherwise())
        time.sleep(POLL_SECONDS)
