"""Who a reverse proxy says that somebody is. Pure.

Its word counts because of where it comes from: the address at the other end of the connection, and never one that a
header names. So whoever reaches the console past the proxy is nobody, whatever they write.
"""

from collections.abc import Sequence
from ipaddress import IPv6Address, ip_address

from shared.console_access import Proxy
from trigger.console.person import LONGEST_CLAIM, MOST_CLAIMS, Identified, NotAdmitted, is_name

Headers = Sequence[tuple[bytes, bytes]]


def proxied(proxy: Proxy, peer: str, headers: Headers) -> Identified | None:
    """Give who asks, by the word of a trusted proxy; None without it. Raises NotAdmitted where it cannot be read."""
    if not is_trusted(proxy, peer):
        return None
    names = _values(headers, proxy.name_header)
    if not names:
        return None
    name = names[0]
    groups = _values(headers, proxy.groups_header) if proxy.groups_header else []
    if len(names) > 1 or len(groups) > 1 or not is_name(name):
        raise NotAdmitted(401, "what the proxy says of who asks cannot be read")
    claims = _groups(groups[0] if groups else "") if proxy.groups_header else (name,)
    return Identified(name, "proxy", claims=claims)


def is_trusted(proxy: Proxy, peer: str) -> bool:
    """Tell whether the other end of a connection is one of the proxies."""
    try:
        address = ip_address(peer)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    return any(address in network for network in proxy.trusted)


def _values(headers: Headers, name: str) -> list[str]:
    """Give each value of a header; of one that is no text, what nobody and nothing is called."""
    return [_text(value) for given, value in headers if given.lower() == name.encode()]


def _text(value: bytes) -> str:
    try:
        return value.decode("utf-8").strip()
    except UnicodeDecodeError:
        return "\x00"


def _groups(text: str) -> tuple[str, ...]:
    groups = tuple(one.strip() for one in text.split(",") if one.strip())
    if len(groups) > MOST_CLAIMS or not all(len(one) <= LONGEST_CLAIM and one.isprintable() for one in groups):
        raise NotAdmitted(401, "what the proxy says of somebody's groups cannot be read")
    return groups
