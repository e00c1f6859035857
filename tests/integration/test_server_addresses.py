"""An address that has all its connections shuts nobody else out, nor the listener for health."""

import socket
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import pytest
import trio

from cambist.config.errors import ConfigError
from cambist.config.sections.server import HealthSettings, ServerSettings
from cambist.config.settings import parse_settings
from cambist.engine.host.server import Server
from support.patience import PATIENCE_S, until
from support.server.server_harness import LAST_GET, NOW_MS, Served, a_router, read_to_end, serving, statuses

both = pytest.mark.parametrize("reactor", [False, True], ids=["task", "reactor"])
MOST = 8


async def asked(served: Served, source: str) -> list[int]:
    """The status that a request from an address gets."""
    with trio.fail_after(PATIENCE_S):
        async with await served.connect_from(source) as stream:
            await stream.send_all(LAST_GET)
            return statuses(await read_to_end(stream))


async def is_served(served: Served, source: str) -> bool:
    """Whether an address gets an answer; of many refusals some are no more than the end of a connection."""
    with trio.fail_after(PATIENCE_S):
        async with await served.connect_from(source) as stream:
            await stream.send_all(LAST_GET)
            return (await read_to_end(stream)).startswith(b"HTTP/1.1 200 ")


def came(served: Served) -> int:
    """Connections that were accepted or refused."""
    told = served.server.statistics()
    return told.accepted + told.refused


@asynccontextmanager
async def idle(served: Served, *sources: str) -> AsyncGenerator[None]:
    """Connections that say nothing, as many from each address as one may have."""
    before = served.server.statistics().accepted
    async with AsyncExitStack() as held:
        for source in sources:
            for _ in range(MOST):
                await held.enter_async_context(await served.connect_from(source))
        await until(lambda: served.server.statistics().accepted >= before + MOST * len(sources))
        yield


@both
async def test_idle_connections_of_one_address_shut_out_that_address_alone(reactor: bool) -> None:
    async with serving(reactor=reactor, connections_per_address_max=MOST) as served:
        async with idle(served, "127.0.0.1"):
            assert await asked(served, "127.0.0.1") == [503]
            assert await asked(served, "127.0.0.2") == [200]
            told = served.server.statistics()
            assert (told.refused, told.refused_by_address) == (1, 1)
        await until(lambda: not served.server.statistics().connections)
        assert await asked(served, "127.0.0.1") == [200]


@both
async def test_idle_connections_of_many_addresses_leave_room_for_other_networks(reactor: bool) -> None:
    """A network has 256 addresses, so that a bound for each address alone bounds nothing."""
    async with serving(reactor=reactor, connections_per_address_max=MOST, connections_max=8 * MOST) as served:
        async with AsyncExitStack() as held:
            for network in range(1, 6):
                before = came(served)
                for address in range(1, 10):
                    for _ in range(MOST):
                        connected = await served.connect_from(f"127.0.{network}.{address}")
                        await held.enter_async_context(connected)
                await until(lambda: came(served) == before + 9 * MOST)  # noqa: B023  awaited here
                assert not await is_served(served, f"127.0.{network}.200")
                assert await is_served(served, "127.0.100.1"), "a newcomer"
            assert served.server.statistics().connections <= 8 * MOST
        await until(lambda: not served.server.statistics().connections)
        assert await is_served(served, "127.0.1.200")


@both
async def test_connections_that_have_asked_count_as_well(reactor: bool) -> None:
    """Connections that the reactor has handed to a task count too."""
    slow = b"POST /slow HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx"
    async with serving(reactor=reactor, connections_per_address_max=MOST) as served:
        async with AsyncExitStack() as held:
            for _ in range(MOST):
                stream = await held.enter_async_context(await served.connect_from("127.0.0.1"))
                await stream.send_all(slow)
                with trio.fail_after(PATIENCE_S):
                    assert b" 200 " in await stream.receive_some(1_000)
            assert await asked(served, "127.0.0.1") == [503]
            assert await asked(served, "127.0.0.2") == [200]
        await until(lambda: not served.server.statistics().connections)
        assert await asked(served, "127.0.0.1") == [200]


@both
@pytest.mark.parametrize("named", ["127.0.0.1", "::ffff:127.0.0.1"])
async def test_a_proxy_has_as_many_as_there_are(reactor: bool, named: str) -> None:
    async with serving(
        reactor=reactor, proxies=[named], connections_per_address_max=MOST, connections_max=4 * MOST
    ) as served:
        async with idle(served, "127.0.0.1", "127.0.0.1"):
            assert await asked(served, "127.0.0.1") == [200]
            await until(lambda: served.server.statistics().connections == 2 * MOST)
            async with idle(served, "127.0.1.2"):
                assert await asked(served, "127.0.1.2") == [503]
                async with idle(served, "127.0.0.1"):
                    assert await asked(served, "127.0.0.1") == [503], "there are no more"
        assert served.server.statistics().refused_by_address == 1


@both
async def test_connections_of_a_proxy_do_not_count_towards_its_network(reactor: bool) -> None:
    """A prober, or a second balancer, has an address beside the proxy's."""
    async with serving(
        reactor=reactor, proxies=["127.0.0.1"], connections_per_address_max=MOST, connections_max=4 * MOST
    ) as served:
        async with idle(served, "127.0.0.1", "127.0.0.1", "127.0.0.1"):
            assert await asked(served, "127.0.0.2") == [200]
            await until(lambda: served.server.statistics().connections == 3 * MOST)
            assert await asked(served, "127.0.0.1") == [200]
        await until(lambda: not served.server.statistics().connections)
        async with idle(served, "127.0.0.2", "127.0.0.3"):
            assert await asked(served, "127.0.0.4") == [503], "others of the network count, as before"


@asynccontextmanager
async def beside() -> AsyncGenerator[Served]:
    """The listener for health of the same settings."""
    settings = ServerSettings(connections_per_address_max=MOST, connections_max=MOST)
    server = Server(a_router(), settings.of_health(), wall_ms=lambda: NOW_MS)
    async with _listening(server) as port:
        yield Served(server, port)


@asynccontextmanager
async def _listening(server: Server) -> AsyncGenerator[int]:
    listener = socket.create_server(("127.0.0.1", 0))
    listener.setblocking(False)
    async with trio.open_nursery() as nursery:
        await nursery.start(server.serve, listener)
        yield listener.getsockname()[1]
        nursery.cancel_scope.cancel()


@both
async def test_the_listener_for_health_has_connections_of_its_own(reactor: bool) -> None:
    async with (
        serving(reactor=reactor, connections_max=2 * MOST) as served,
        beside() as health,
        idle(served, "127.0.0.1"),
    ):
        assert await asked(served, "127.0.0.2") == [503], "nobody of this network gets in any more"
        assert await asked(health, "127.0.0.1") == [200]
        assert await asked(health, "127.0.0.2") == [200]


def test_health_is_served_over_plain_http_on_few_connections() -> None:
    settings = ServerSettings(port=1, health=HealthSettings(), idle_s=3.0)
    health = settings.of_health()
    assert (health.tls, health.connections_max, health.idle_s) == (None, 64, 3.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[server.health]\nport = 65536", "port is 0 to 65535, got 65536"),
        ("[server.health]\npath = '/h'", "is not a setting"),
    ],
)
def test_wrong_settings_are_refused(text: str, said: str, tmp_path: Any) -> None:
    with pytest.raises(ConfigError, match=said):
        parse_settings(text, {}, tmp_path)
