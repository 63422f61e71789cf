"""Reading what stands behind the question mark: what cannot be is refused with the place and what is valid."""

import re
from collections.abc import Mapping
from datetime import datetime

from schemas.message import MAXIMUM_ACCOUNT_BYTES
from shared.bounds import bounded
from shared.errors import MatinsError
from shared.terminal import Refused, read_instant

HIGHEST_PAGE = 100_000
LONGEST_WORDS = 200


class Unanswerable(MatinsError):
    """The question cannot be read; the message names the place and what is valid."""


def page_number(query: Mapping[str, str]) -> int:
    """Give the page that is asked for, from 1. Raises Unanswerable."""
    text = query.get("page") or "1"
    if not re.fullmatch(r"[1-9]\d{0,5}", text, re.ASCII) or int(text) > HIGHEST_PAGE:
        raise Unanswerable(f"page: {text[:20]!r} is not a page; valid is a whole number from 1 to {HIGHEST_PAGE}")
    return int(text)


def words(query: Mapping[str, str], name: str) -> str:
    """Give a text that is looked for, '' for none. Raises Unanswerable for a long one, or what no database stores."""
    text = query.get(name, "").strip()
    if "\0" in text:
        raise Unanswerable(f"{name}: nothing here holds NUL")
    if len(text) > LONGEST_WORDS:
        raise Unanswerable(f"{name}: at most {LONGEST_WORDS} characters")
    return text


def account_id(query: Mapping[str, str], name: str) -> str:
    """Give an account's id, or its beginning, as it was written; '' for none. Raises Unanswerable for what is none."""
    text = query.get(name, "")
    if "\0" in text:
        raise Unanswerable(f"{name}: no account's id holds NUL")
    if len(text.encode()) > MAXIMUM_ACCOUNT_BYTES:
        raise Unanswerable(f"{name}: no account's id is longer than {MAXIMUM_ACCOUNT_BYTES} bytes")
    return text


def one_of(query: Mapping[str, str], name: str, valid: tuple[str, ...]) -> str:
    """Give one of the valid words, '' for none. Raises Unanswerable."""
    text = query.get(name, "")
    if text and text not in valid:
        raise Unanswerable(f"{name}: {text[:40]!r} is unknown; valid are {', '.join(valid)}")
    return text


def instant_of(query: Mapping[str, str], name: str) -> datetime | None:
    """Give an instant in UTC, of the years 100 to 9900, None for none. Raises Unanswerable."""
    text = query.get(name, "").strip()
    if not text:
        return None
    try:
        return bounded(read_instant(name, text), name)
    except Refused as error:
        raise Unanswerable(str(error)) from None
