"""Addresses of clients: the text by which the server knows one, and the groups in which it counts them.

Choice: IPv4 addresses mapped into IPv6 count as IPv4; IPv6 addresses of one /64 count as one.
"""

import socket
from ipaddress import IPv6Address, ip_address


def address_share(address: str) -> str:
    """Key under which the server counts the open connections of an IP address.

    Returns:
        An IPv4 address itself; the first 64 bits of an IPv6 address in hex.
    """
    if ":" not in address:
        return address
    return socket.inet_pton(socket.AF_INET6, address.partition("%")[0])[:8].hex()


def network_of(address: str) -> str:
    """Network of an IP address, whose addresses one party is likely to have.

    Returns:
        The first 24 bits of an IPv4 address, e.g. `192.0.2`; the first 56 bits of an IPv6 address in hex.
    """
    if ":" not in address:
        return address.rpartition(".")[0]
    return socket.inet_pton(socket.AF_INET6, address.partition("%")[0])[:7].hex()


def client_at(address: str) -> str:
    """Return a peer's address as text; of an IPv4 address mapped into IPv6, the IPv4 address."""
    mapped = address.removeprefix("::ffff:")
    return address if ":" in mapped else mapped


def canonical_address(text: str) -> str:
    """Normalise an IP address to the text by which the server knows a client.

    An IPv4 address that is mapped into IPv6 becomes the IPv4 address itself.

    Raises:
        ValueError: `text` is no IP address.
    """
    address = ip_address(text)
    if isinstance(address, IPv6Address):
        return str(address.ipv4_mapped or address)
    return str(address)
