"""Where somebody goes next: paths of the console alone, whatever a request names. Pure."""

import re
from typing import Final
from urllib.parse import quote

SIGN_IN: Final = "/sign-in"
SIGN_OUT: Final = "/sign-out"
BEGIN: Final = "/sign-in/provider"
BACK: Final = "/sign-in/back"
# What is beneath the pages.
PREFIX: Final = "/api/v1"
LONGEST_PATH: Final = 2000
# A second slash, or what a browser takes for one, would lead to another host.
_LOCAL = re.compile(r"/(?![/\\])[!-\[\]-~]*", re.ASCII)


def local_path(text: str) -> str:
    """Give a path of the console with its query, or '/' for what is none."""
    if len(text) > LONGEST_PATH or not _LOCAL.fullmatch(text) or text.startswith((SIGN_IN, SIGN_OUT)):
        return "/"
    return text


def sign_in_address(path: str, place: str = SIGN_IN) -> str:
    """Give where somebody signs in who wants to go to a path."""
    return f"{place}?to={quote(local_path(path), safe='/')}"


def is_beneath(path: str) -> bool:
    """Tell whether a path is one of the JSON beneath the pages."""
    return path == "/api" or path.startswith("/api/")
