"""The same two servers as containers, where a Docker engine answers.

The published ports are chosen here, not by the engine, so that an address stays the same through a restart.
"""

import secrets
from collections.abc import Callable
from typing import Final

from docker.errors import DockerException
from docker.models.containers import Container
from testcontainers.core.config import testcontainers_config
from testcontainers.core.container import DockerContainer

from examples.servers import probe
from examples.servers.ports import free_ports
from examples.servers.server import BrokerServer, DatabaseServer, ServerUnavailableError, wait_until

POSTGRES_IMAGE: Final = "postgres:17"
RABBIT_IMAGE: Final = "rabbitmq:4-management"
START_SECONDS = 90.0
STOP_SECONDS = 30
USER = "matins"
TLS_PORT = 5671
METRICS_PORT = 15692


class Contained:
    """One container with fixed ports: what both servers here share. It is made by the first start."""

    def __init__(self, make: Callable[[], DockerContainer], answers: Callable[[str], bool]) -> None:
        self._make = make
        self._answers = answers
        self._container: DockerContainer | None = None
        self.host = "127.0.0.1"

    def start(self) -> None:
        """Start on the kept data and return when it answers; raises ServerUnavailableError."""
        try:
            if self._container is None:
                self._create()
            else:
                self._wrapped().start()
        except DockerException as error:
            raise ServerUnavailableError(f"The Docker engine could not start it: {error}") from error
        wait_until(lambda: self._answers(self.host), START_SECONDS, self._logs)

    def stop(self) -> None:
        """Stop in order."""
        if self._container:
            self.resume()
            self._wrapped().stop(timeout=STOP_SECONDS)

    def kill(self) -> None:
        """End it with SIGKILL."""
        if self._container and self._status() in {"running", "paused"}:
            self.resume()
            self._wrapped().kill()
            self._wrapped().wait()

    def pause(self) -> None:
        """Freeze it."""
        if self._container and self._status() == "running":
            self._wrapped().pause()

    def resume(self) -> None:
        """Let it go on."""
        if self._container and self._status() == "paused":
            self._wrapped().unpause()

    def delete(self) -> None:
        """Remove the container and its data."""
        if self._container:
            self._container.stop(force=True, delete_volume=True)
            self._container = None

    def _create(self) -> None:
        testcontainers_config.ryuk_disabled = True  # its image is one more to get; the container is deleted here
        container = self._make()
        container.start()
        self._container = container
        self.host = container.get_container_host_ip()

    def _wrapped(self) -> Container:
        assert self._container is not None  # noqa: S101 - the callers have looked
        return self._container.get_wrapped_container()

    def _status(self) -> str:
        wrapped = self._wrapped()
        wrapped.reload()
        return str(wrapped.status)

    def _logs(self) -> str:
        return str(self._wrapped().logs(tail=20).decode(errors="replace"))


class PostgresContainer(Contained, DatabaseServer):
    """PostgreSQL in a container."""

    def __init__(self, image: str = POSTGRES_IMAGE) -> None:
        self._image = image
        self._port = free_ports(1)[0]
        self._password = secrets.token_hex(12)
        super().__init__(self._describe, lambda host: probe.postgres_answers(host, self._port))

    @property
    def url(self) -> str:
        """An administrator's address of the database `postgres`."""
        return f"postgresql://postgres:{self._password}@{self.host}:{self._port}/postgres"

    def stop_at_once(self) -> None:
        """Stop in the immediate mode."""
        self._wrapped().kill("SIGQUIT")
        self._wrapped().wait()

    def kill_backend(self, process_id: int) -> None:
        """End one backend with SIGKILL."""
        self._wrapped().exec_run(["kill", "-KILL", str(process_id)])

    def _describe(self) -> DockerContainer:
        return (
            DockerContainer(self._image)
            .with_env("POSTGRES_PASSWORD", self._password)
            .with_bind_ports(5432, self._port)
            .with_command("postgres -c max_connections=200 -c fsync=off -c full_page_writes=off")
        )


class RabbitContainer(Contained, BrokerServer):
    """RabbitMQ, with its management interface, in a container."""

    def __init__(self, image: str = RABBIT_IMAGE) -> None:
        self._image = image
        self._port, self._management_port, self._tls_port, self._metrics_port = free_ports(4)
        self._password = secrets.token_hex(12)
        super().__init__(self._describe, self._both_answer)

    @property
    def url(self) -> str:
        """An administrator's address of the default virtual host."""
        return f"amqp://{USER}:{self._password}@{self.host}:{self._port}"

    @property
    def management_url(self) -> str:
        """The address of the management interface."""
        return f"http://{USER}:{self._password}@{self.host}:{self._management_port}"

    @property
    def metrics_address(self) -> str:
        """The published port; the images tell metrics by themselves."""
        return f"{self.host}:{self._metrics_port}"

    @property
    def tls_port(self) -> int:
        """The published port."""
        return self._tls_port

    @property
    def tls_listener(self) -> tuple[str, int]:
        """The usual port, inside of the container."""
        return "0.0.0.0", TLS_PORT  # noqa: S104 - the container's own interfaces

    def control(self, *arguments: str) -> None:
        """Run rabbitmqctl."""
        status, output = self._wrapped().exec_run(["rabbitmqctl", *arguments])
        if status:
            raise ServerUnavailableError(f"rabbitmqctl {' '.join(arguments)} failed:\n{output!r}")

    def wipe(self) -> None:
        """Lose everything, and start empty at the same address."""
        self.delete()
        self.start()

    def _both_answer(self, host: str) -> bool:
        return probe.amqp_answers(host, self._port) and probe.management_answers(self.management_url)

    def _describe(self) -> DockerContainer:
        return (
            DockerContainer(self._image)
            .with_env("RABBITMQ_DEFAULT_USER", USER)
            .with_env("RABBITMQ_DEFAULT_PASS", self._password)
            .with_kwargs(hostname="matins")  # the data folder is named after the host
            .with_bind_ports(5672, self._port)
            .with_bind_ports(15672, self._management_port)
            .with_bind_ports(TLS_PORT, self._tls_port)
            .with_bind_ports(METRICS_PORT, self._metrics_port)
        )
