"""Secrets that nobody can overlook: passwords full of what URLs, JSON and shells treat specially, in known pieces."""

import base64
import secrets
from dataclasses import dataclass, field
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Canary:
    """One password; its pieces are random words between special characters, so that a part of it is found as well."""

    name: str
    pieces: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        """Make the pieces."""
        object.__setattr__(self, "pieces", tuple(f"{self.name}{secrets.token_hex(4)}" for _ in range(7)))

    @property
    def plain(self) -> str:
        """The password as it is meant."""
        marks = ("/", "@", ":", "#", "%", "é?", "")
        return "".join(piece + mark for piece, mark in zip(self.pieces, marks, strict=True))

    @property
    def quoted(self) -> str:
        """The password as it is written in a URL."""
        return quote(self.plain, safe="")

    def forms(self, user: str) -> set[str]:
        """Give everything that must not be found: each piece, and what a user's password looks like in a header."""
        encoded = (self.plain, self.quoted, f"{user}:{self.plain}")
        return {*self.pieces, *(base64.b64encode(form.encode()).decode().rstrip("=") for form in encoded)}
