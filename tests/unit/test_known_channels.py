"""The channels while their file is replaced under a running process."""

from pathlib import Path

import pytest

from shared.channels import Slack
from shared.notify import KnownChannels
from shared.rereading import READ_AGAIN_SECONDS

TEXT = '[channels.team]\nkind = "slack"\nurl = "https://hooks.slack.com/services/{}"\n'


def test_a_file_that_is_replaced_is_read_again_and_a_faulty_one_leaves_what_was_known(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file, now = tmp_path / "channels.toml", [0.0]
    file.write_text(TEXT.format("first-address"), encoding="utf-8")
    known = KnownChannels(lambda: file.read_text(encoding="utf-8"), lambda: now[0])

    def url() -> str:
        now[0] += READ_AGAIN_SECONDS
        channel = known.current("team")
        assert channel is not None
        assert isinstance(channel.target, Slack)
        return channel.target.url.rpartition("/")[2]

    file.write_text(TEXT.format("second-address"), encoding="utf-8")
    assert url() == "second-address"
    file.write_text("[channels.team]\nkind = ", encoding="utf-8")
    assert [url(), url()] == ["second-address", "second-address"]
    assert capsys.readouterr().out.count("the channels cannot be read") == 1
    file.write_text(TEXT.format("third-address"), encoding="utf-8")
    assert url() == "third-address"
    file.write_text('[channels.other]\nkind = "log"\n', encoding="utf-8")
    now[0] += READ_AGAIN_SECONDS
    assert known.current("team") is None
    assert known.names == ["other"]
