"""The text by which the server knows the client of a connection."""

import pytest

from cambist.engine.host.server.addresses import address_share, client_at


@pytest.mark.parametrize(
    ("address", "client"),
    [
        ("203.0.113.7", "203.0.113.7"),
        ("::ffff:203.0.113.7", "203.0.113.7"),
        ("2001:db8::7", "2001:db8::7"),
        ("::ffff:0:102:304", "::ffff:0:102:304"),  # IPv4-translated (RFC 2765), not mapped
    ],
)
def test_an_address_is_one_whose_connections_can_be_counted(address: str, client: str) -> None:
    assert client_at(address) == client
    assert address_share(client)
