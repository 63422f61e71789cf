"""Users of the broker with the rights of the manifest, for one test's prefix and virtual host."""

import secrets
import urllib.parse
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict

from examples.servers.find import Broker
from tests.support.broker import manage, virtual_host_of
from tests.support.servers import unique_name
from trigger.broker_rights import WHO, Rights, Who, rights_under


@contextmanager
def broker_users(broker: Broker, url: str, prefix: str) -> Iterator[dict[Who, str]]:
    """Have a user each for migrate, triggers, workers and operators; give the addresses that they connect to."""
    addresses: dict[Who, str] = {}
    try:
        for who, rights in rights_under(prefix).items():
            addresses[who] = make_user(broker, url, f"{who}-{unique_name()}", rights)
        yield addresses
    finally:
        for address in addresses.values():
            manage(broker, "DELETE", f"/api/users/{user_of(address)}")


def make_user(broker: Broker, url: str, name: str, rights: Rights, tags: str = "") -> str:
    """Make a user with rights in the virtual host of `url`, or change one; give its address."""
    password = secrets.token_hex(12)
    manage(broker, "PUT", f"/api/users/{name}", {"password": password, "tags": tags})
    grant(broker, url, name, rights)
    address = urllib.parse.urlsplit(url)
    return address._replace(netloc=f"{name}:{password}@{address.hostname}:{address.port}").geturl()


def grant(broker: Broker, url: str, name: str, rights: Rights) -> None:
    """Give a user other rights."""
    manage(broker, "PUT", f"/api/permissions/{virtual_host_of(url)}/{name}", asdict(rights))


def user_of(address: str) -> str:
    """Give the user of an address."""
    return str(urllib.parse.urlsplit(address).username)


def named(addresses: Mapping[Who, str]) -> str:
    """Give the setting that names these users."""
    return ",".join(f"{who}={user_of(addresses[who])}" for who in WHO)
