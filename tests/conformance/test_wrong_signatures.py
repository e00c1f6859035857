"""Wrong signatures cost their sender and nobody else: recoveries and questions to the chain are counted."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from cambist.codecs.http1 import Response
from cambist.codecs.transactions import create2_address
from cambist.config import limits
from cambist.config.limits import VENUE_SIGNATURE_GAS_MAX
from cambist.config.sections.venue import Rate, RateTier
from cambist.engine.chain.deploy.create2_factory import FACTORY
from cambist.engine.chain.transact import transact
from cambist.engine.host.process.clock import WallClock
from cambist.engine.trade.delta.orders.terms import SettledOrder
from support.chain.evm_programs import assembled, deploys
from support.chain.world import ONE, USDC, person
from support.contracts.rfq_stories import a_wallet_that_sells
from support.counted_signatures import CountedChain, counted_recoveries
from support.delta.order_front import (
    API_KEY,
    BUILD_CANCEL,
    CANCEL,
    ORDERS,
    OrderFront,
    an_order_front,
)
from support.server.server_harness import field

BURST, EVERY_S = 16, 50
TIER = RateTier(per_s=100_000, burst=100_000, wrong_signatures=Rate(per_s=1 / EVERY_S, burst=BURST))
STRANGER = person(77)
LOOPS = "loop: GAS 60000 LT @loop JUMPI"
"""Uses up all gas but 60,000 units."""
YES = f"{LOOPS} 0x1626ba7e 224 SHL 0 MSTORE 32 0 RETURN"
NO = f"{LOOPS} 32 0 RETURN"


class Venue:
    """A front whose clock is ours and whose chain counts."""

    def __init__(self, front: OrderFront, chain: CountedChain, recovered: list[bytes]) -> None:
        self.front, self.chain, self.recovered = front, chain, recovered
        self.late_ms = 0
        self._sold = 0

    async def asked(self, path: str, body: Any, address: str, **headers: str) -> Response:
        """The answer to a caller behind the proxy."""
        sent = {
            "x-forwarded-for": address,
            **{name.replace("_", "-"): value for name, value in headers.items()},
        }
        return await self.front.ask("POST", path, msgspec.json.encode(body), sent)

    async def a_sale(self, **changed: Any) -> SettledOrder:
        """Another one each time."""
        self._sold += 1
        order: SettledOrder = await self.front.a_sale(
            src_amount=ONE // 100,
            dest_amount=20 * USDC,
            expected_amount=25 * USDC,
            nonce=self._sold,
            **changed,
        )
        return order

    async def submits(self, address: str, *, key: Any = None, **headers: str) -> Response:
        """An order of the user's, signed by the user or another key."""
        return await self.asked(
            ORDERS, self.front.world.delta_body(await self.a_sale(), key), address, **headers
        )

    def work(self) -> tuple[int, Counter[str]]:
        """Recoveries and questions so far."""
        return len(self.recovered), Counter(self.chain.asked)


@pytest.fixture
async def venue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Venue]:
    async with a_venue(tmp_path, monkeypatch) as venue:
        yield venue


@asynccontextmanager
async def a_venue(folder: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Venue]:
    chains: list[CountedChain] = []
    began_ms = WallClock().now_ms()
    holder: list[Venue] = []

    def counted(chain: Any) -> CountedChain:
        chains.append(CountedChain(chain))
        return chains[0]

    def now_ms() -> int:
        return began_ms + (holder[0].late_ms if holder else 0)

    async with an_order_front(folder, chain=counted, tier=TIER, now_ms=now_ms) as front:
        holder.append(Venue(front, chains[0], counted_recoveries(monkeypatch)))
        yield holder[0]


async def test_a_caller_of_wrong_signatures_is_429_until_its_penalty_runs_out(venue: Venue) -> None:
    spender = "192.0.2.1"
    for _ in range(BURST):
        answer = await venue.submits(spender, key=STRANGER)
        assert (answer.status, msgspec.json.decode(answer.body)["errorType"]) == (400, "InvalidSignature")
    before = venue.work()
    assert before == (BURST, Counter(block=BURST, code=BURST)), "no code at the owner ends it: nothing else"
    refused = await venue.submits(spender, key=STRANGER)
    assert refused.status == 429
    body = msgspec.json.decode(refused.body)
    assert body["errorType"] == "RateLimited"
    assert body["details"] == f"rate limit exceeded: too many wrong signatures: retry in {EVERY_S} s"
    assert field(refused, b"retry-after") == b"%d" % EVERY_S
    assert field(refused, b"ratelimit-limit") == b"100000"
    assert (await venue.submits(spender)).status == 429, "a right one of the same caller is not looked at"
    assert venue.work() == before

    venue.late_ms = EVERY_S * 1_000 - 1
    assert (await venue.submits(spender)).status == 429
    venue.late_ms += 1
    assert (await venue.submits(spender)).status == 200
    assert (await venue.submits(spender, key=STRANGER)).status == 400
    assert (await venue.submits(spender)).status == 429
    told = venue.front.admission.statistics()
    assert told.wrong_signatures == {"public": BURST + 1, "keyed": 0}
    assert told.signatures_refused == {"public": 4, "keyed": 0}


async def test_honest_callers_beside_a_flood_keep_their_answers(venue: Venue) -> None:
    rounds, good = 3 * BURST, 0
    for number in range(rounds):
        for spender in ("192.0.2.1", "192.0.2.2"):
            await venue.submits(spender, key=STRANGER)
        honest = await venue.submits("192.0.2.3")
        keyed = await venue.submits("192.0.2.1", x_api_key=API_KEY)
        assert (honest.status, keyed.status) == (200, 200), (number, honest.body, keyed.body)
        good += 2
    recoveries, asked = venue.work()
    assert recoveries == good + 2 * BURST
    assert asked["code"] == 2 * BURST
    assert asked["call_many"] % good == 0, "the chain is asked of the good ones alone"
    assert venue.front.admission.statistics().wrong_signatures["keyed"] == 0


async def test_a_key_spends_its_own_and_an_ipv6_network_is_one_caller(venue: Venue) -> None:
    for number in range(BURST):
        assert (await venue.submits(f"2001:db8::{number:x}", key=STRANGER)).status == 400
    assert (await venue.submits("2001:db8::ffff")).status == 429
    assert (await venue.submits("2001:db8:0:1::1")).status == 200
    for number in range(BURST):
        bad = await venue.submits(f"192.0.2.{number}", key=STRANGER, x_api_key=API_KEY)
        assert bad.status == 400
    assert (await venue.submits("192.0.2.99", x_api_key=API_KEY)).status == 429
    assert (await venue.submits("192.0.2.99")).status == 200


async def test_what_is_refused_for_anything_else_spends_nothing(venue: Venue) -> None:
    for _ in range(2 * BURST):
        order = replace(await venue.a_sale(), deadline=1)
        late = await venue.asked(ORDERS, venue.front.world.delta_body(order), "192.0.2.1")
        assert msgspec.json.decode(late.body)["errorType"] == "OrderExpired"
        assert (await venue.asked(ORDERS, {"chainId": 5}, "192.0.2.1")).status == 400
        rich = replace(await venue.a_sale(), src_amount=100 * ONE)
        poor = await venue.asked(ORDERS, venue.front.world.delta_body(rich), "192.0.2.1")
        assert msgspec.json.decode(poor.body)["errorType"] == "InsufficientBalance"
    assert (await venue.submits("192.0.2.1")).status == 200
    assert venue.front.admission.statistics().wrong_signatures["public"] == 0


async def test_an_order_that_waits_for_a_contract_costs_a_unit(venue: Venue) -> None:
    wallet = await a_wallet_that_sells(venue.front.world)
    statuses = []
    for _ in range(BURST + 1):
        order = await venue.a_sale(owner=wallet, beneficiary=wallet)
        body = venue.front.world.delta_body(order) | {"signature": "0x"}
        answer = await venue.asked(ORDERS, body, "192.0.2.1")
        statuses.append((answer.status, msgspec.json.decode(answer.body).get("status")))
    assert statuses == [(200, "AWAITING_SIGNATURE")] * BURST + [(429, None)]


@pytest.mark.parametrize("owner", ["a key", "a contract"])
async def test_a_full_room_costs_no_unit(venue: Venue, monkeypatch: pytest.MonkeyPatch, owner: str) -> None:
    monkeypatch.setattr(limits, "VENUE_LIVE_ORDERS_PER_OWNER_MAX", 1)
    world = venue.front.world
    account = world.user.address if owner == "a key" else await a_wallet_that_sells(world)
    answers = []
    for _ in range(BURST + 2):
        order = await venue.a_sale(owner=account, beneficiary=account)
        answers.append(await venue.asked(ORDERS, world.delta_body(order, world.user), "192.0.2.1"))
    first, *others = answers
    assert first.status == 200
    assert {msgspec.json.decode(answer.body)["errorType"] for answer in others} == {"TooManyOpenOrders"}


async def test_an_order_that_is_over_is_told_to_a_wrong_signature_which_is_spent(venue: Venue) -> None:
    order = await venue.a_sale()
    record = await venue.front.submitted(order)
    wrong = venue.front.world.delta_body(order, STRANGER)
    for _ in range(2 * BURST):
        assert msgspec.json.decode((await venue.asked(ORDERS, wrong, "192.0.2.1")).body) == record
    assert not venue.front.admission.statistics().wrong_signatures["public"], "in memory: not looked at"
    venue.front.live.leave(())  # as when an order has ended: the store alone knows it
    for _ in range(BURST):
        assert msgspec.json.decode((await venue.asked(ORDERS, wrong, "192.0.2.1")).body) == record
    assert (await venue.asked(ORDERS, wrong, "192.0.2.1")).status == 429


async def test_cancellations_spend_the_same(venue: Venue) -> None:
    front = venue.front
    record = await front.submitted(await venue.a_sale())
    ids = [record["id"]]
    for _ in range(BURST):
        answer = await venue.asked(CANCEL, front.world.cancel_body(ids, STRANGER), "192.0.2.1")
        assert msgspec.json.decode(answer.body)["errorType"] == "InvalidSignature"
    before = venue.work()
    assert (await venue.asked(CANCEL, front.world.cancel_body(ids), "192.0.2.1")).status == 429
    assert (await venue.submits("192.0.2.1")).status == 429
    assert venue.work() == before
    assert (await venue.asked(BUILD_CANCEL, {"orderIds": ids}, "192.0.2.1")).status == 200
    assert (await venue.asked(CANCEL, front.world.cancel_body(ids), "192.0.2.2")).status == 200


async def planted(venue: Venue, code: str) -> bytes:
    """A contract of a caller's own."""
    world, init_code = venue.front.world, deploys(assembled(code))
    await transact(world.chain, world.owner, FACTORY, bytes(32) + init_code)
    return create2_address(FACTORY, bytes(32), init_code)


@pytest.mark.parametrize("code", [NO, YES], ids=["says no", "says yes"])
async def test_a_contract_that_burns_gas_is_asked_a_few_times(venue: Venue, code: str) -> None:
    """A contract accepts in the end; without funds no order is stored, and no used allowance returns."""
    owner = await planted(venue, code)
    for _ in range(BURST):
        order = replace(await venue.a_sale(), owner=owner, beneficiary=owner)
        answer = await venue.asked(ORDERS, venue.front.world.delta_body(order, STRANGER), "192.0.2.1")
        wanted = "InvalidSignature" if code == NO else "InsufficientAllowance"
        assert msgspec.json.decode(answer.body)["errorType"] == wanted, answer.body
    before = venue.work()
    order = replace(await venue.a_sale(), owner=owner, beneficiary=owner)
    answer = await venue.asked(ORDERS, venue.front.world.delta_body(order, STRANGER), "192.0.2.1")
    assert (answer.status, venue.work()) == (429, before)
    assert VENUE_SIGNATURE_GAS_MAX * BURST <= 16_000_000, "what an address can have a node burn at once"
