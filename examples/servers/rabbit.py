"""A private RabbitMQ: own folder, ports and name registry (epmd) on the loopback interface; gone with its parent."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
from pathlib import Path

from examples.servers import probe
from examples.servers.ports import LOOPBACK, free_ports
from examples.servers.process import Process, as_ordinary_user, give_away, private_folder
from examples.servers.programs import BROKER_SERVER_VARIABLE, Programs, chosen, programs_in
from examples.servers.server import BrokerServer, ServerUnavailableError, wait_until

START_SECONDS = 60.0
STOP_SECONDS = 30.0
USER = "matins"
PLACES = "usr/lib/rabbitmq/lib/rabbitmq_server-*"
CONFIGURATION = """
listeners.tcp.default = {loopback}:{amqp_port}
management.tcp.ip = {loopback}
management.tcp.port = {management_port}
default_user = {user}
default_pass = {password}
disk_free_limit.absolute = 50MB
vm_memory_high_watermark.absolute = 512MB
collect_statistics_interval = 1000
log.console = false
log.file.level = info
"""
# Only the loopback interface, and no spinning while idle: several nodes share few cores here.
VIRTUAL_MACHINE_ARGUMENTS = "-kernel inet_dist_use_interface {127,0,0,1} +sbwt none +sbwtdcpu none +sbwtdio none"


def find_rabbit() -> Programs | None:
    """Give the programs that the environment chooses, or else the newest of this machine that any user may run.

    The wrappers in /usr/sbin are passed over: they insist on the user and on the node of the system. Raises
    ServerUnavailableError when the chosen folder has none.
    """
    folder = chosen(BROKER_SERVER_VARIABLE)
    if isinstance(folder, Path):
        return programs_in(folder, BROKER_SERVER_VARIABLE, "rabbitmq-server", f"{PLACES}/sbin")
    found = sorted(Path("/").glob(f"{PLACES}/sbin/rabbitmq-server"))
    return Programs(found[-1].parent) if found else None


def find_registry(programs: Programs) -> str:
    """Give the path of Erlang's name registry as the programs see it; raises ServerUnavailableError."""
    if programs.system is not None:
        return "/usr/bin/epmd"
    found = shutil.which("epmd") or next(map(str, Path("/usr/lib/erlang").glob("erts-*/bin/epmd")), None)
    if found is None:
        raise ServerUnavailableError("There is no epmd on this machine: install the package erlang-base.")
    return found


class RabbitServer(BrokerServer):
    """RabbitMQ with its management interface, and metrics if asked for, from programs that are there or were chosen."""

    def __init__(self, *, metrics: bool = False) -> None:
        programs = find_rabbit()
        if programs is None:
            raise ServerUnavailableError("There is no RabbitMQ on this machine: install the package rabbitmq-server.")
        self._programs = programs
        self._amqp_port, self._management_port, self._node_port, self._registry_port, self._tls_port = free_ports(5)
        self._metrics_port = free_ports(1)[0]
        self._password = secrets.token_hex(12)
        self._folder = private_folder("rabbit")
        self._processes: list[Process] = []
        plugins = ["rabbitmq_management"]
        settings = self._configuration()
        if metrics:
            plugins.append("rabbitmq_prometheus")
            settings += f"prometheus.tcp.ip = {LOOPBACK}\nprometheus.tcp.port = {self._metrics_port}\n"
        self._write("rabbitmq.conf", settings)
        self._write("enabled_plugins", f"[{','.join(plugins)}].\n")

    @property
    def url(self) -> str:
        """An administrator's address of the default virtual host."""
        return f"amqp://{USER}:{self._password}@{LOOPBACK}:{self._amqp_port}"

    @property
    def management_url(self) -> str:
        """The address of the management interface."""
        return f"http://{USER}:{self._password}@{LOOPBACK}:{self._management_port}"

    @property
    def metrics_address(self) -> str:
        """Where its metrics are, if it was made with `metrics`."""
        return f"{LOOPBACK}:{self._metrics_port}"

    @property
    def tls_port(self) -> int:
        """A port that nothing else uses."""
        return self._tls_port

    @property
    def tls_listener(self) -> tuple[str, int]:
        """The same port, on the loopback interface."""
        return LOOPBACK, self._tls_port

    def start(self) -> None:
        """Start on the kept data, the registry first, and return when clients and the management are answered."""
        port = str(self._registry_port)
        registry = self._run("registry.log", find_registry(self._programs), "-address", LOOPBACK, "-port", port)
        wait_until(self._registry_listens, START_SECONDS, registry.last_lines)
        node = self._run("output.log", "rabbitmq-server")

        def answers() -> bool:
            node.check()
            return probe.amqp_answers(LOOPBACK, self._amqp_port) and probe.management_answers(self.management_url)

        wait_until(answers, START_SECONDS, lambda: f"{node.last_lines()}\n{self._node_log()}")

    def stop(self) -> None:
        """Stop the node in order, then its registry."""
        while self._processes:
            self._processes.pop().end(signal.SIGTERM, STOP_SECONDS)

    def kill(self) -> None:
        """End the node, everything that it started, and its registry with SIGKILL."""
        while self._processes:
            self._processes.pop().kill()

    def pause(self) -> None:
        """Freeze the node."""
        for process in reversed(self._processes):
            process.pause()

    def resume(self) -> None:
        """Let it go on."""
        for process in self._processes:
            process.resume()

    def control(self, *arguments: str) -> None:
        """Run rabbitmqctl."""
        done = subprocess.run(
            as_ordinary_user(self._programs.command(self._folder, "rabbitmqctl", *arguments)),
            env=self._environment(),
            cwd=self._folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=STOP_SECONDS,
        )
        if done.returncode:
            raise ServerUnavailableError(f"rabbitmqctl {' '.join(arguments)} failed:\n{done.stdout}{done.stderr}")

    def wipe(self) -> None:
        """Lose everything, and start empty at the same address."""
        self.kill()
        shutil.rmtree(self._folder / "data", ignore_errors=True)
        self.start()

    def delete(self) -> None:
        """Kill it and remove its folder."""
        self.kill()
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, log: str, program: str, *arguments: str) -> Process:
        command = self._programs.command(self._folder, program, *arguments)
        process = Process(command, environment=self._environment(), log=self._folder / log)
        self._processes.append(process)
        return process

    def _write(self, name: str, text: str) -> None:
        path = self._folder / name
        path.write_text(text)
        path.chmod(0o600)
        give_away(path)

    def _configuration(self) -> str:
        return CONFIGURATION.format(
            loopback=LOOPBACK,
            amqp_port=self._amqp_port,
            management_port=self._management_port,
            user=USER,
            password=self._password,
        )

    def _environment(self) -> dict[str, str]:
        folder = self._programs.seen(self._folder, self._folder)
        data = folder / "data"
        return {
            "PATH": os.environ["PATH"],
            "LC_ALL": "C.UTF-8",
            "HOME": str(folder),
            "ERL_EPMD_ADDRESS": LOOPBACK,
            "ERL_EPMD_PORT": str(self._registry_port),
            "RABBITMQ_BASE": str(folder),
            "RABBITMQ_CONF_ENV_FILE": "/dev/null",
            "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
            "RABBITMQ_CTL_DIST_PORT_MAX": str(self._node_port + 20),
            "RABBITMQ_CTL_DIST_PORT_MIN": str(self._node_port + 10),
            "RABBITMQ_DIST_PORT": str(self._node_port),
            "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
            "RABBITMQ_LOG_BASE": str(folder / "log"),
            "RABBITMQ_LOGS": str(folder / "log" / "node.log"),
            "RABBITMQ_MNESIA_BASE": str(data),
            "RABBITMQ_MNESIA_DIR": str(data / "node"),
            "RABBITMQ_NODENAME": f"matins-{self._amqp_port}@localhost",
            "RABBITMQ_PID_FILE": str(folder / "pid"),
            "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": VIRTUAL_MACHINE_ARGUMENTS,
            "RUNNING_UNDER_SYSTEMD": "true",  # the start script becomes the node instead of waiting for it
        }

    def _registry_listens(self) -> bool:
        try:
            socket.create_connection((LOOPBACK, self._registry_port), timeout=1).close()
        except OSError:
            return False
        return True

    def _node_log(self) -> str:
        log = self._folder / "log" / "node.log"
        return "\n".join(log.read_text(errors="replace").splitlines()[-20:]) if log.exists() else ""
