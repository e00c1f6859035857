"""Connect to public internet addresses alone, for URLs whose host names another party resolves.

    name -> its addresses -> those of the public internet -> the first that answers
                                   none: refused

The checked address is also the dialled address: a name that resolves differently the next time cannot evade
the check.

A look-up takes a thread, which it keeps until the name servers answer, also after the dial was given up. The
other party may run the name servers, and have them answer late: each host's look-ups have one thread of their
own, and none of the threads that the process shares (`trio.to_thread.current_default_thread_limiter`). Calls
that wait for a host's thread share the answer that arrives meanwhile, so that many dials at once wait as long
as one.

Choice: An IPv6 address that carries an IPv4 address (mapped, 6to4, NAT64) is also judged by the latter.
"""

import errno
import socket
import ssl
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias

import trio

from ...config.timeouts import DIAL_S
from .streams import dial

LookUp: TypeAlias = Callable[[str, int], Awaitable[Sequence[str]]]
"""Function (host, port) -> IP addresses of the host; raises OSError if there are none."""

_NAT64 = IPv6Network("64:ff9b::/96")


class HostLookUps:
    """Look-ups of hosts' addresses, each host's in a thread of its own, one after the other."""

    def __init__(self) -> None:
        self._hosts = defaultdict[str, _HostLookUp](_HostLookUp)

    async def addresses(self, host: str, port: int) -> list[str]:
        """Find the IP addresses of a host; a cancelled call leaves its thread to the name servers.

        The addresses are those of a look-up that ends after the call has begun.

        Raises:
            OSError: the name has no address.
        """
        known = self._hosts[host]
        return await trio.to_thread.run_sync(
            known.addresses, known.ended, host, port, abandon_on_cancel=True, limiter=known.thread
        )


class _HostLookUp:
    """The last look-up of one host.

    Attributes:
        thread: limit to one thread, the only one that changes the other attributes.
        ended: number of look-ups that have ended.
    """

    def __init__(self) -> None:
        self.thread = trio.CapacityLimiter(1)
        self.ended = 0
        self._found: list[str] | OSError = []

    def addresses(self, ended: int, host: str, port: int) -> list[str]:
        """Return what a look-up has found that ended after `ended` others; if there is none, look up now."""
        if self.ended == ended:
            try:
                self._found = _addresses(host, port)
            except OSError as error:
                self._found = error
            self.ended += 1
        if isinstance(self._found, OSError):
            raise OSError(*self._found.args)  # a new one: several calls raise it
        return self._found


def _addresses(host: str, port: int) -> list[str]:
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address) for *_, (address, *_) in found]


def is_outward(address: str) -> bool:
    """Whether an IP address belongs to the public internet."""
    found = ip_address(address.partition("%")[0])
    return all(ip.is_global and not ip.is_multicast for ip in (found, *_carried(found)))


async def dial_outward(
    host: str,
    port: int,
    *,
    tls: ssl.SSLContext | None,
    server_hostname: str | None = None,
    timeout_s: float = DIAL_S,
    look_up: LookUp,
) -> trio.abc.Stream:
    """Connect as `dial` does, but only to an address of the public internet.

    Args:
        look_up: finds the host's addresses, such as `HostLookUps.addresses`.

    Raises:
        OSError: no connection could be made, or the name has no public address.
    """
    with trio.move_on_after(timeout_s) as scope:
        outward = [address for address in await look_up(host, port) if is_outward(address)]
        fault = OSError(f"{host} leads to a private address")
        for address in outward:
            left_s = max(scope.deadline - trio.current_time(), 0)  # the loop may be late
            try:
                # The address that was checked, not `host`: a second look-up could lead elsewhere.
                return await dial(
                    address, port, tls=tls, server_hostname=server_hostname or host, timeout_s=left_s
                )
            except OSError as error:
                fault = error
        raise fault
    raise TimeoutError(errno.ETIMEDOUT, f"no connection within {timeout_s} s")


def _carried(address: IPv4Address | IPv6Address) -> list[IPv4Address]:
    """List the IPv4 addresses that an IPv6 address embeds."""
    if isinstance(address, IPv4Address):
        return []
    nat64 = IPv4Address(int(address) & 0xFFFFFFFF) if address in _NAT64 else None
    return [ip for ip in (address.ipv4_mapped, address.sixtofour, nat64) if ip is not None]
