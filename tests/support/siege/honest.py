"""Honest traders of a venue: what they do each few seconds, and how long it takes."""

import math
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any

import httpx
import trio
from msgspec import Struct, field

from cambist.client import OtcState, SigningKey, TradeVerdict, Venue
from cambist.config.errors import CambistError
from cambist.config.sections.nodes import NodeSettings
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.crypto.signatures import to_compact64
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.port import Chain
from cambist.engine.chain.transact import transact
from cambist.engine.dev.devnet.anvil import AnvilChain
from support.patience import PATIENCE_S
from support.siege.place import CHAIN_ID, FAR_CHAIN_ID

ONE = 10**18
PACE_S, BRIDGED_PACE_S = 2.0, 10.0
"""Seconds from the begin of one act of a trader to that of its next; bridges take some seconds."""
LOOK_S = 0.5
PLAIN_ADDRESS, BRIDGING_ADDRESS = "127.0.1.1", "127.0.2.1"
"""Addresses of the traders that do not use `cambist.client`."""
ENDS = {"COMPLETED", "FAILED", "EXPIRED", "CANCELLED", "REFUNDED"}
ACT_S = PATIENCE_S
"""Bound of one act."""


class Acts(Struct):
    """Outcomes of the acts of one kind.

    Attributes:
        seconds: of those that succeeded.
        faults: texts of those that did not.
    """

    seconds: list[float] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)

    @property
    def success(self) -> float:
        """Part that succeeded, 0 to 1."""
        return len(self.seconds) / max(len(self.seconds) + len(self.faults), 1)

    def slowest(self, percent: int) -> float:
        """Seconds that so many percent of the acts take at most."""
        found = sorted(self.seconds) or [math.inf]
        return found[min(len(found) * percent // 100, len(found) - 1)]

    def __str__(self) -> str:
        p50, p99 = self.slowest(50), self.slowest(99)
        most = ", ".join(f"{seconds:.3f}" for seconds in sorted(self.seconds)[-5:])
        done = f"{len(self.seconds)} done, {len(self.faults)} not"
        return f"{done}, {p50:.3f} s at the median, {p99:.3f} s p99, the slowest {most} s"


class Traders:
    """Honest traders with an account each, and what they have done.

    Args:
        keys: hexadecimal private keys of accounts with tokens: of swaps by `cambist.client`, of swaps by a
            client that signs no consent, of Delta orders, and of OTC orders. The owner of Delta orders has
            others whose tokens are swapped after a bridge.
    """

    def __init__(
        self,
        venue: Venue,
        chain: Chain,
        webs: Sequence[httpx.AsyncClient],
        tokens: dict[str, str],
        keys: Sequence[str],
    ) -> None:
        self._venue, self._chain = venue, chain
        self._plain_web, self._bridging_web = webs
        self._tokens = tokens
        self._swapper, self._plain, self._owner, self._maker = keys
        self.kinds: dict[str, Callable[[], Awaitable[None]]] = {
            "quote": self.quote,
            "swap": self.swap,
            "plain swap": self.plain_swap,
            "order": self.order,
            "OTC post": self.otc_post,
            "bridged": self.bridged,
        }

    @classmethod
    @asynccontextmanager
    async def open(
        cls, url: str, node: str, tokens: dict[str, str], keys: Sequence[str]
    ) -> AsyncIterator["Traders"]:
        """Traders at a venue and a node of its chain."""
        async with (
            Venue.open(url, CHAIN_ID, rpc=node) as venue,
            _web(url, PLAIN_ADDRESS) as plain,
            _web(url, BRIDGING_ADDRESS) as bridging,
            AnvilChain.open(CHAIN_ID, NodeSettings(urls=(node,)), known_errors()) as chain,
        ):
            yield cls(venue, chain, (plain, bridging), tokens, keys)

    async def trade(self, seconds: float) -> dict[str, Acts]:
        """Have each kind of act done every few seconds, for so long; their outcomes."""
        found = {name: Acts() for name in self.kinds}
        async with trio.open_nursery() as nursery:
            for number, name in enumerate(self.kinds):
                nursery.start_soon(self._repeat, name, found[name], seconds, number * PACE_S / len(found))
        return found

    async def _repeat(self, name: str, acts: Acts, seconds: float, first_s: float) -> None:
        began, pace_s = trio.current_time() + first_s, BRIDGED_PACE_S if name == "bridged" else PACE_S
        for number in range(math.ceil(seconds / pace_s)):
            await trio.sleep_until(began + number * pace_s)
            at = time.perf_counter()
            try:
                with trio.fail_after(ACT_S):
                    await self.kinds[name]()
            except (CambistError, httpx.HTTPError, trio.TooSlowError, AssertionError) as error:
                acts.faults.append(str(error) or repr(error))
            else:
                acts.seconds.append(time.perf_counter() - at)

    # --- Acts -----------------------------------------------------------------------------------------

    async def quote(self) -> None:
        await self._venue.quote("WETH", "USDC", "0.1")

    async def swap(self) -> None:
        swap = await self._venue.swap("WETH", "USDC", "0.02", key=self._swapper, slippage_bps=300)
        assert swap.verdict is TradeVerdict.SWAPPED, swap

    async def plain_swap(self) -> None:
        """A swap of native tokens by a client that knows the documents alone."""
        user = SigningKey(parse_hex(self._plain, "key"))
        native = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"
        pair = {"srcToken": native, "destToken": self._tokens["USDC"], "srcDecimals": 18, "destDecimals": 6}
        query = pair | {
            "amount": str(ONE // 50), "side": "SELL", "network": CHAIN_ID, "version": "6.2",
            "userAddress": f"0x{user.address.hex()}",
        }  # fmt: skip
        route = (await _asked(self._plain_web, "GET", "/prices", params=query))["priceRoute"]
        body = pair | {
            "srcAmount": route["srcAmount"], "slippage": 300, "priceRoute": route,
            "userAddress": f"0x{user.address.hex()}",
        }  # fmt: skip
        built = await _asked(self._plain_web, "POST", f"/transactions/{CHAIN_ID}", json=body)
        to, data = parse_hex(built["to"], "to"), parse_hex(built["data"], "data")
        await transact(self._chain, user, to, data, value_wei=int(built["value"]))

    async def order(self) -> None:
        order = await self._venue.order("WETH", "USDC", "0.05", key=self._owner, slippage_bps=300)
        end = await self._venue.follow(order, timeout_s=ACT_S)
        assert end.is_settled, end

    async def bridged(self) -> None:
        """A sale whose token is swapped after a bridge, by a client that knows the documents alone."""
        user = SigningKey(parse_hex(self._owner, "key"))
        wish = {
            "chainId": CHAIN_ID, "destChainId": FAR_CHAIN_ID, "srcToken": self._tokens["WBTC"],
            "destToken": self._tokens["WETH"], "srcDecimals": 8, "destDecimals": 18, "side": "SELL",
            "amount": str(10**5), "mode": "DELTA", "includeBridges": "cctp",
        }  # fmt: skip
        route = (await _asked(self._bridging_web, "GET", "/v2/quote", params=wish))["delta"]["route"]
        sold = {"route": route, "owner": to_checksum(user.address), "slippage": 300}
        built = await _asked(
            self._bridging_web,
            "POST",
            "/v2/delta/orders/build",
            json=sold | {"deadline": int(time.time()) + 3_600},
        )
        signature = to_hex(to_compact64(*user.sign(parse_hex(built["orderHash"], "orderHash"))))
        sent = {"chainId": CHAIN_ID, "order": built["toSign"]["value"], "signature": signature}
        record = await _asked(self._bridging_web, "POST", "/v2/delta/orders", json=sent | {"partner": "anon"})
        while record["status"] not in ENDS:
            await trio.sleep(LOOK_S)
            record = await _asked(self._bridging_web, "GET", f"/v2/delta/orders/{record['id']}")
        assert (record["status"], record["output"]["token"]) == ("COMPLETED", self._tokens["WETH"]), record

    async def otc_post(self) -> None:
        post = await self._venue.otc("WETH", "USDC", "0.01", key=self._maker, price=9_000, life_s=120)
        assert post.state is OtcState.PENDING, post


def _web(url: str, address: str) -> httpx.AsyncClient:
    """A client at an address of its own, and so with a rate of its own."""
    transport = httpx.AsyncHTTPTransport(local_address=address)
    return httpx.AsyncClient(base_url=url, timeout=ACT_S, transport=transport)


async def _asked(web: httpx.AsyncClient, method: str, path: str, **more: Any) -> Any:
    answer = await web.request(method, path, **more)
    assert answer.status_code == 200, answer.text
    return answer.json()
