"""Who is signed in: kept in the database, so that every process knows it, and who signs out is out everywhere.

A token is 256 random bits, and only its digest is written down. While the database is away, who was signed in a moment
ago may go on looking at what this process still knows; nobody acts then.
"""

import secrets
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import sha256
from typing import Any, Final

import anyio

from shared import clock
from shared.console_access import Access
from shared.postgres import Database, Session, is_transient
from shared.sql_files import statement
from trigger.console.person import Identified

INSERT_SESSION = statement("trigger.console", "insert_session")
FIND_SESSION = statement("trigger.console", "find_session")
TOUCH_SESSION = statement("trigger.console", "touch_session")
END_SESSION = statement("trigger.console", "end_session")
FORGET_SESSIONS = statement("trigger.console", "forget_sessions")
SPEND_FORM = statement("trigger.console", "spend_form")
KEEP_NOTICE = statement("trigger.console", "keep_notice")
SEE_SESSIONS = statement("trigger.console", "see_sessions")

TOKEN_BYTES: Final = 32
TOKEN_LENGTH: Final = 43
REMEMBERED_SECONDS: Final = 900.0
MOST_REMEMBERED: Final = 1000
LONGEST_NOTICE: Final = 4000
PATIENCE_SECONDS: Final = 5.0
# Who is away is not asked again by everybody who looks.
AGAIN_SECONDS: Final = 2.0


@dataclass(frozen=True, slots=True)
class SignedIn:
    """A session: who it is, its token, the last form that was acted on and what is told of it."""

    who: Identified
    token: str = field(repr=False)
    form: str = ""
    notice: str = ""


@dataclass(slots=True)
class Sessions:
    """The sessions of the console; for the event loop of one thread. `instance` is the process's, for the trail."""

    database: Database
    instance: str
    monotonic: Callable[[], float] = clock.monotonic
    _failed_at: float = float("-inf")
    _remembered: OrderedDict[bytes, tuple[SignedIn, float]] = field(default_factory=OrderedDict)

    async def begin(self, who: Identified, role: str, former: str = "") -> SignedIn:
        """Sign somebody in under a new token; the session of the `former` one ends. Raises what the database raises."""
        token = secrets.token_urlsafe(TOKEN_BYTES)
        detail = {"means": who.means, "issuer": who.issuer, "subject": who.subject, "role": role}
        written = (digest_of(token), who.name, who.means, who.issuer, who.subject, list(who.claims))
        async with self.database.transaction() as session:
            if former:
                await session.execute(END_SESSION, digest_of(former), self.instance)
            await session.execute(INSERT_SESSION, *written, self.instance, detail)
        return SignedIn(who, token)

    async def find(self, token: str, access: Access, *, moves: bool, looks: bool) -> SignedIn | None:
        """Give who is signed in with a token; None for nobody. Raises what the database raises.

        `moves`: somebody went to a page, and the session is not idle. `looks`: nothing is to be changed, so that what
        is remembered will do while the database is away.
        """
        if len(token) != TOKEN_LENGTH:
            return None
        digest = digest_of(token)
        known = self._known(digest) if looks else None
        if known is not None and self.monotonic() - self._failed_at < AGAIN_SECONDS:
            return known
        try:
            with anyio.fail_after(PATIENCE_SECONDS):
                row = await self._read(digest, access, moves=moves)
        except Exception as error:
            if known is None or not is_transient(error):
                raise
            self._failed_at = self.monotonic()
            return known
        if row is None:
            self._remembered.pop(digest, None)
            return None
        return self._remember(digest, _signed_in(row, token))

    async def end(self, token: str) -> None:
        """Sign somebody out. Raises what the database raises."""
        digest = digest_of(token)
        self._remembered.pop(digest, None)
        async with self.database.session() as session:
            await session.execute(END_SESSION, digest, self.instance)

    async def forget(self, access: Access) -> None:
        """Delete what is over. Raises what the database raises."""
        async with self.database.session() as session:
            await session.execute(FORGET_SESSIONS, access.idle, access.longest)

    async def _read(self, digest: bytes, access: Access, *, moves: bool) -> Any:
        async with self.database.session() as session:
            row: Any = await session.fetchrow(FIND_SESSION, digest, access.idle, access.longest)
            if row is not None and row["stale"] and moves:
                await session.execute(TOUCH_SESSION, digest)
        return row

    def _known(self, digest: bytes) -> SignedIn | None:
        known = self._remembered.get(digest)
        return known[0] if known and self.monotonic() - known[1] < REMEMBERED_SECONDS else None

    def _remember(self, digest: bytes, signed_in: SignedIn) -> SignedIn:
        self._remembered[digest] = signed_in, self.monotonic()
        self._remembered.move_to_end(digest)
        while len(self._remembered) > MOST_REMEMBERED:
            self._remembered.popitem(last=False)
        return signed_in


async def spend_form(session: Session, signed_in: SignedIn, form: str) -> bool:
    """Take a form for sent; tell whether it had not been before. Raises what the database raises."""
    return bool(await session.fetchval(SPEND_FORM, digest_of(signed_in.token), form))


async def keep_notice(session: Session, signed_in: SignedIn, form: str, notice: str) -> None:
    """Keep what a person is told of the form that they have sent last. Raises what the database raises."""
    await session.execute(KEEP_NOTICE, digest_of(signed_in.token), form, notice[:LONGEST_NOTICE])


async def see_sessions(session: Session) -> None:
    """See that the login may keep sessions. Raises InsufficientPrivilege."""
    await session.fetch(SEE_SESSIONS)


def digest_of(token: str) -> bytes:
    """Give what is kept of a token."""
    return sha256(token.encode()).digest()


def _signed_in(row: Any, token: str) -> SignedIn:
    who = Identified(row["name"], row["means"], row["issuer"], row["subject"], tuple(row["claims"]))
    return SignedIn(who, token, row["form"] or "", row["notice"] or "")
