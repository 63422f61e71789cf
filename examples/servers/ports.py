"""Free ports on the loopback interface.

They lie below the range from which the kernel serves clients: a client that keeps trying a port of that range, while
its server is down, can be given that very port, connect to itself, and keep the server from coming back.
"""

import secrets
import socket

LOOPBACK = "127.0.0.1"
FIRST, LAST = 15000, 32000


def free_ports(count: int) -> list[int]:
    """Give `count` different ports on which nothing listened a moment ago."""
    found: set[int] = set()
    while len(found) < count:
        port = FIRST + secrets.randbelow(LAST - FIRST)
        if is_free(port):
            found.add(port)
    return list(found)


def is_free(port: int) -> bool:
    """Tell whether a server could listen on `port` now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((LOOPBACK, port))
        except OSError:
            return False
        return True
