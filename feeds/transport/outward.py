"""Connect to public internet addresses alone, for URLs whose host names another party resolves.

    name -> its addresses -> those of the public internet -> the first that answers
                                   none: refused

The checked address is also the dialled address: a name that resolves differently the next time cannot evade
the check.

Choice: An IPv6 address that carries an IPv4 address (mapped, 6to4, NAT64) is also judged by the latter.
"""

import errno
import ssl
from ipaddress import IPv4Address, IPv6Address, IPv6Network, ip_address

import trio

from ...config.timeouts import DIAL_S
from .streams import dial

_NAT64 = IPv6Network("64:ff9b::/96")


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
) -> trio.abc.Stream:
    """Connect as `dial` does, but only to an address of the public internet.

    Raises:
        OSError: no connection could be made, or the name has no public address.
    """
    with trio.move_on_after(timeout_s) as scope:
        found = await trio.socket.getaddrinfo(host, port, type=trio.socket.SOCK_STREAM)
        outward = [address for *_, (address, *_) in found if is_outward(str(address))]
        fault = OSError(f"{host} leads to a private address")
        for address in outward:
            left_s = max(scope.deadline - trio.current_time(), 0)  # the loop may be late
            try:
                # The address that was checked, not `host`: a second look-up could lead elsewhere.
                return await dial(
                    str(address), port, tls=tls, server_hostname=server_hostname or host, timeout_s=left_s
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
