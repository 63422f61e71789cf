"""What no file of the repository may say: where some machine keeps things, and whom it downloads from."""

import re

import pytest

from tests.architecture.sources import texts

# In two halves, so that this file passes its own test.
HOSTS = ("pypi" + ".org", "python" + "hosted.org", "registry.npm" + "js", "deb.deb" + "ian.org", "golang" + ".org")
FORBIDDEN = {
    "a machine's own path": re.compile(r"(?<![\w.$}])/(?:work|root|home|Users)" + r"/\w"),
    "the host of a package registry": re.compile("|".join(map(re.escape, HOSTS))),
    "another project's or nobody's page": re.compile(r"shared/(design|protocol|style|reliability|ecosystem)" + r"\.md"),
    "a conflict that nobody resolved": re.compile(r"^(<{7}|>{7}) ", re.MULTILINE),
}


@pytest.mark.parametrize("meaning", FORBIDDEN)
def test_no_file_says(meaning: str) -> None:
    found = [
        f"{path}:{text.count(chr(10), 0, match.start()) + 1}: {match[0]}"
        for path, text in texts()
        for match in FORBIDDEN[meaning].finditer(text)
    ]
    assert found == []
