"""What a page says, read from its HTML as a person would: its text, its tables, its lists and its links."""

from dataclasses import dataclass
from typing import Any

from justhtml import JustHTML


@dataclass(frozen=True, slots=True)
class Shown:
    """The main part of a page."""

    node: Any

    @property
    def text(self) -> str:
        """Everything that it says, with single spaces."""
        return said_by(self.node)

    @property
    def heading(self) -> str:
        """What its only first heading says."""
        (heading,) = self.node.query("h1")
        return said_by(heading)

    def table(self, labelled: str) -> list[list[str]]:
        """Give the rows of the table under a heading, by that heading's id."""
        for region in self.node.query("[aria-labelledby]"):
            if region.attrs["aria-labelledby"] == labelled and region.attrs.get("role") == "region":
                rows = region.query("tbody")[0].query("tr")
                return [[said_by(cell) for cell in row.children if cell.name in {"td", "th"}] for row in rows]
        return []

    def facts(self) -> dict[str, str]:
        """Give what stands in lists of facts and of numbers, by its name."""
        named = (one for one in self.node.query("dl > div"))
        return {said_by(one.query("dt")[0]): said_by(one.query("dd")[0]) for one in named}

    def items(self, kind: str) -> list[str]:
        """Give what the items of a list say, by the list's class."""
        return [said_by(one) for one in self.node.query(f".{kind} > li")]

    def links(self) -> dict[str, str]:
        """Give where links lead, by what they say."""
        return {said_by(one): one.attrs["href"] for one in self.node.query("a[href]")}


def shown(html: str) -> Shown:
    """Read a page."""
    (main,) = JustHTML(html, sanitize=False).query("main")
    return Shown(main)


def said_by(node: Any) -> str:
    """Give the text of an element, with single spaces."""
    return " ".join(node.to_text(separator=" ", strip=False, separator_blocks_only=True).replace("\u202f", "").split())
