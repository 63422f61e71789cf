"""Which programs serve, and how those of an unpacked system are called."""

from pathlib import Path

import pytest

from examples.servers.__main__ import main
from examples.servers.programs import Programs, chosen, programs_in
from examples.servers.server import ServerUnavailableError

PLACES = "usr/lib/rabbitmq/lib/rabbitmq_server-*/sbin"
STATE = Path("/somewhere/state")


def with_program(folder: Path, below: str) -> Path:
    (folder / below).mkdir(parents=True)
    (folder / below / "rabbitmq-server").touch()
    return folder


def found_in(folder: Path) -> Programs:
    return programs_in(folder, "MATINS_TEST_X", "rabbitmq-server", PLACES)


def test_a_folder_or_an_image_is_chosen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert chosen("X", {}) is None
    assert chosen("X", {"X": ""}) is None
    assert chosen("X", {"X": "rabbitmq:4.0-management"}) == "rabbitmq:4.0-management"
    assert chosen("X", {"X": "registry.example/rabbitmq:4"}) == "registry.example/rabbitmq:4"
    assert chosen("X", {"X": "/not/there"}) == Path("/not/there")
    (tmp_path / "unpacked").mkdir()
    monkeypatch.chdir(tmp_path)
    assert chosen("X", {"X": "unpacked"}) == tmp_path / "unpacked"


def test_the_programs_of_an_unpacked_download_are_called_as_they_are(tmp_path: Path) -> None:
    found = found_in(with_program(tmp_path, "sbin"))
    assert found.command(STATE, "rabbitmq-server", "-x") == [str(tmp_path / "sbin/rabbitmq-server"), "-x"]
    assert found.seen(STATE / "data", STATE) == STATE / "data"


def test_the_programs_of_an_unpacked_system_are_called_inside_it(tmp_path: Path) -> None:
    # What lies in the system's own sbin would start the server of this machine.
    with_program(tmp_path, "usr/sbin")
    (tmp_path / "sbin").symlink_to("usr/sbin")
    inside = PLACES.replace("*", "4.3.6")
    found = found_in(with_program(tmp_path, inside))
    command = found.command(STATE, "rabbitmq-server", "-x")
    assert command[0] == "unshare"
    assert command[-4:] == [str(tmp_path), str(STATE), f"/{inside}/rabbitmq-server", "-x"]
    assert found.seen(STATE / "data", STATE) == Path("/mnt/data")


def test_a_folder_without_the_program_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(ServerUnavailableError, match=f"MATINS_TEST_X: {tmp_path} holds no rabbitmq-server"):
        found_in(tmp_path)


def test_what_cannot_be_unpacked_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["unpack", "trixie", "nginx", str(tmp_path)]) == 2
    assert "PACKAGE: postgresql or rabbitmq-server" in capsys.readouterr().err
    (tmp_path / "mine").touch()
    assert main(["unpack", "trixie", "postgresql", str(tmp_path)]) == 1
    assert f"{tmp_path} is not empty" in capsys.readouterr().err
