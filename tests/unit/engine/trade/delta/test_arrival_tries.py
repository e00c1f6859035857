"""Tries of a swap after a bridge: their gas; and few that revert, further and further apart."""

from collections.abc import Mapping
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from msgspec import Struct
from msgspec.structs import replace
from trio.testing import MockClock

from cambist.codecs.bridges.arrivals import ArrivalTerms, pay_out_arrival, swap_arrival
from cambist.codecs.contracts.abi import selector, uint_word
from cambist.codecs.contracts.calldata import OrderInfo
from cambist.codecs.contracts.delta_calldata import rfq_step
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.codecs.messages.vocabulary import Side
from cambist.config.errors import ChainError, Reverted
from cambist.config.limits import (
    ARRIVAL_MAKER_REVERTS_MAX,
    ARRIVAL_PAY_OUT_GAS,
    ARRIVAL_REVERTS_MAX,
    ARRIVAL_SWAP_GAS_MAX,
    ARRIVAL_TRIES_MAX,
)
from cambist.config.timeouts import ARRIVAL_LOOK_S, ARRIVAL_PAUSE_S, ARRIVAL_PAUSE_S_MAX
from cambist.engine.chain.port import EthCall
from cambist.engine.chain.relay.relayer import IntentOutcome
from cambist.engine.store.rows import IntentState
from cambist.engine.trade.delta.arriving.arrival_swaps import ArrivalSwaps, WantedSwap
from cambist.engine.trade.delta.arriving.swap_calls import swap_call
from cambist.engine.trade.routing.firm.firm_route import FilledHop, FirmRoute, SignedFill
from cambist.engine.trade.routing.search.plan import SwapRequest

ACCOUNT, ALICE, USDC, DAI, MAKER, ARRIVALS, EXECUTOR, RFQ, RELAYER, WETH, OWNER = (
    bytes([number]) * 20 for number in range(0xA1, 0xAC)
)
TERMS = ArrivalTerms(ALICE, USDC, DAI, 1, 1_800_003_600, bytes(32))
WANTED = WantedSwap(TERMS, OWNER)
ORDER = RfqOrder(7, TERMS.until, DAI, USDC, MAKER, EXECUTOR, 5, 5)
ROUTE = FirmRoute(
    Side.SELL, 5, 5, (FilledHop(USDC, DAI, 0, 0, (SignedFill("zoe", ORDER, bytes(65)),)),), TERMS.until
)


class Sent(Struct):
    """A swap that was handed to the relayer, and when, seconds of the test's clock."""

    at: float
    call: EthCall


class Tried:
    """Swaps on a chain and by a relayer that are played: each call has the same end.

    Args:
        end: state of the calls, and the hash of the transaction if one was mined; None leaves them pending.
        error: signature of the error that a mined call returned.
        estimate: gas of each call.
        amount, native: tokens, and native tokens, that the arrival's account holds.
        late_s: seconds since the signed time.
    """

    def __init__(
        self,
        end: tuple[IntentState, bytes | None] | None,
        error: str = "TransferFailed(address)",
        estimate: int = 410_000,
        *,
        amount: int = 5,
        native: int = 0,
        late_s: int = -3_600,
    ) -> None:
        self.asked: list[SwapRequest] = []
        self.filled: list[dict[str, Any]] = []
        self.looked: list[str] = []
        self.sent: dict[str, Sent] = {}
        self._end, self._error = end or (IntentState.PENDING, None), error
        head, tokens = SimpleNamespace(time_s=TERMS.until + late_s), self._tokens((USDC, DAI))
        served = SimpleNamespace(
            chain=SimpleNamespace(
                block=_answer(head),
                call=_answer(uint_word(amount)),
                balance=_answer(native),
                estimate_gas=_answer(estimate),
            ),
            desk=SimpleNamespace(fill=self._fill, wall_ms=lambda: 0),
            pathfinder=SimpleNamespace(find=self._find),
            gas=SimpleNamespace(gas_price_wei=1),
            barred=lambda *_, **__: frozenset(),
            tokens=SimpleNamespace(by_address=tokens, wrapped_native=USDC if native else b""),
            arrivals=ARRIVALS,
            executor=EXECUTOR,
            rfq=RFQ,
        )
        self.served: Any = served
        place: Any = SimpleNamespace(served=served, relayer=self, gas_max=1 << 24)
        self.address = RELAYER
        self.swaps = ArrivalSwaps(place)

    def _find(self, wanted: SwapRequest) -> str | None:
        self.asked.append(wanted)
        return None if "zoe" in wanted.without else "a plan"

    async def _fill(self, _plan: str, _wanted: SwapRequest, **more: Any) -> FirmRoute:
        await trio.lowlevel.checkpoint()
        self.filled.append(more)
        return ROUTE

    @staticmethod
    def _tokens(addresses: tuple[bytes, ...]) -> Mapping[bytes, Any]:
        return {address: SimpleNamespace(routed=address) for address in addresses}

    async def outcome(self, key: str) -> IntentOutcome | None:
        """As `Relayer.outcome`."""
        await trio.lowlevel.checkpoint()
        self.looked.append(key)
        state, tx_hash = self._end
        if key not in self.sent:
            return None
        error4 = None if tx_hash is None else selector(self._error)
        return IntentOutcome(key, state, "it had no effect", tx_hash, error4=error4)

    async def relay(self, key: str, call: EthCall, deadline_s: int | None = None) -> None:
        """As `Relayer.relay`."""
        await trio.lowlevel.checkpoint()
        assert deadline_s == (None if key.startswith("arrival-out:") else ROUTE.expiry_s)
        self.sent[key] = Sent(trio.current_time(), call)

    async def wanted(self, seconds: float) -> list[Sent]:
        """Have an arrival swapped for so long; what was handed in, in order."""
        self.swaps.want({ACCOUNT: WANTED})
        with trio.move_on_after(seconds):
            await self.swaps.run()
        return [*self.sent.values()]


def _answer(value: Any) -> Any:
    async def answer(*_: Any, **__: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return value

    return answer


async def test_an_arrival_is_swapped_at_once_though_no_other_was_wanted_before(
    autojump_clock: MockClock,
) -> None:
    tried = Tried(None)
    async with trio.open_nursery() as nursery:
        await nursery.start(tried.swaps.run)
        await trio.sleep(60)
        tried.swaps.want({ACCOUNT: WANTED})
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert len(tried.sent) == 1


async def test_calls_that_revert_are_few_and_further_and_further_apart(autojump_clock: MockClock) -> None:
    tried = Tried((IntentState.REVERTED, b"\x01" * 32))
    sent = await tried.wanted(3_600)
    assert len(sent) == ARRIVAL_REVERTS_MAX
    first, second = (later.at - one.at for one, later in pairwise(sent))
    assert second > first
    assert "failed too often" in tried.swaps.hint(ACCOUNT)


async def test_a_maker_whose_fills_revert_is_left_out_and_the_order_is_not_charged(
    autojump_clock: MockClock,
) -> None:
    tried = Tried((IntentState.REVERTED, b"\x01" * 32), "StepFailed(uint256,bytes)")
    assert len(await tried.wanted(3_600)) == ARRIVAL_MAKER_REVERTS_MAX < ARRIVAL_REVERTS_MAX
    assert "no live books" in tried.swaps.hint(ACCOUNT)


async def test_pauses_double_up_to_a_bound(autojump_clock: MockClock) -> None:
    sent = await Tried((IntentState.FAILED, None)).wanted(3_600)
    pauses = [min(ARRIVAL_PAUSE_S * 2**number, ARRIVAL_PAUSE_S_MAX) for number in range(len(sent) - 1)]
    assert [later.at - one.at for one, later in pairwise(sent)] == [
        pytest.approx(ARRIVAL_LOOK_S + pause) for pause in pauses
    ]


@pytest.mark.parametrize(
    ("late_s", "name", "hint"),
    [(0, "arrival", "its swap is under way"), (1, "arrival-out", "its pay-out is under way")],
)
async def test_an_arrival_is_swapped_until_the_last_signed_second_and_paid_out_then(
    autojump_clock: MockClock, late_s: int, name: str, hint: str
) -> None:
    tried = Tried(None, late_s=late_s)
    await tried.wanted(60)
    assert [key.split(":")[0] for key in tried.sent] == [name]
    assert tried.swaps.hint(ACCOUNT).endswith(hint)


async def test_a_pay_out_that_fails_again_and_again_is_left_to_anybody(autojump_clock: MockClock) -> None:
    tried = Tried((IntentState.FAILED, None), late_s=1)
    sent = await tried.wanted(3_600)
    assert [one.call.gas_max for one in sent] == [ARRIVAL_PAY_OUT_GAS] * ARRIVAL_TRIES_MAX
    assert "anybody may call payOut" in tried.swaps.hint(ACCOUNT)


async def test_an_account_without_tokens_has_nothing_swapped_and_says_so(autojump_clock: MockClock) -> None:
    tried = Tried(None, amount=0)
    assert not await tried.wanted(60)
    assert "taken from its account" in tried.swaps.hint(ACCOUNT)


async def test_native_tokens_are_swapped_with_wrapped_ones(autojump_clock: MockClock) -> None:
    tried = Tried(None, amount=5, native=7)
    await tried.wanted(1)
    wanted = SwapRequest(USDC, DAI, 12, Side.SELL, without=frozenset(), gas_price_wei=1)
    assert tried.asked == [wanted]


@pytest.mark.parametrize("state", [IntentState.CANCELLED, IntentState.FAILED])
async def test_calls_that_were_never_mined_are_tried_more_often(
    autojump_clock: MockClock, state: IntentState
) -> None:
    assert len(await Tried((state, None)).wanted(3_600)) == ARRIVAL_TRIES_MAX


@pytest.mark.parametrize(
    ("estimate", "gas"), [(410_000, 410_000 * 6 // 5 + 100_000), (8_000_000, ARRIVAL_SWAP_GAS_MAX)]
)
async def test_a_calls_gas_is_its_estimate_with_room_and_a_bound(
    autojump_clock: MockClock, estimate: int, gas: int
) -> None:
    (sent,) = await Tried(None, estimate=estimate).wanted(60)
    assert sent.call.gas_max == gas


# --- Calls ----------------------------------------------------------------------------------------------


async def test_a_swap_is_called_by_the_relayer_with_the_makers_signatures(autojump_clock: MockClock) -> None:
    tried = Tried(None, estimate=100_000)
    await tried.wanted(1)
    data = swap_call(TERMS, ROUTE, tried.served)
    call = EthCall(ARRIVALS, data, RELAYER, gas_max=100_000 * 6 // 5 + 100_000)
    assert {key: sent.call for key, sent in tried.sent.items()} == {f"arrival:{ACCOUNT.hex()}:0": call}


async def test_a_pay_out_is_called_by_the_relayer_once_the_chain_would_take_it(
    autojump_clock: MockClock,
) -> None:
    tried = Tried(None, late_s=1)
    take = tried.served.chain.call

    async def refuses(_: EthCall) -> bytes:
        await trio.lowlevel.checkpoint()
        raise Reverted("not yet", b"")

    tried.served.chain.call = refuses
    assert await tried.wanted(1) == []
    assert "not yet" in tried.swaps.hint(ACCOUNT)
    tried.served.chain.call = take
    await tried.wanted(60)
    call = EthCall(ARRIVALS, pay_out_arrival(TERMS, USDC), RELAYER, gas_max=ARRIVAL_PAY_OUT_GAS)
    assert {key: sent.call for key, sent in tried.sent.items()} == {f"arrival-out:{ACCOUNT.hex()}:0": call}


def test_a_route_of_two_hops_sells_what_it_has_quotes_for_and_delivers_at_the_end() -> None:
    """The first hop sells the amount of the route, the next all that came of it, or what it is signed for."""
    served = Tried(None).served
    served.tokens.by_address |= Tried._tokens((WETH,))
    there = SignedFill("ann", RfqOrder(1, TERMS.until, WETH, USDC, MAKER, EXECUTOR, 9, 5), b"\x01" * 65)
    back = SignedFill("bob", RfqOrder(2, TERMS.until, DAI, WETH, MAKER, EXECUTOR, 8, 9), b"\x02" * 65)
    for signed in (0, 9):
        hops = FilledHop(USDC, WETH, 0, 0, (there,)), FilledHop(WETH, DAI, signed, 0, (back,))
        first = rfq_step(RFQ, [OrderInfo(there.order, there.signature, 5)], 5, 0, EXECUTOR)
        second = rfq_step(RFQ, [OrderInfo(back.order, back.signature, 9)], signed, 0, ARRIVALS)
        data = swap_call(TERMS, FirmRoute(Side.SELL, 5, 8, hops, TERMS.until), served)
        assert data == swap_arrival(TERMS, [first.data, second.data], (USDC, WETH))
    bought = FilledHop(USDC, DAI, 4, 3, ROUTE.hops[0].fills)
    step = rfq_step(RFQ, [OrderInfo(ORDER, bytes(65), 5)], 4, 3, ARRIVALS)
    route = FirmRoute(Side.SELL, 5, 8, (bought,), TERMS.until)
    assert swap_call(TERMS, route, served) == swap_arrival(TERMS, [step.data], (USDC,))


# --- Trouble --------------------------------------------------------------------------------------------


async def test_each_arrival_is_looked_at_when_it_is_due(autojump_clock: MockClock) -> None:
    """One whose swap is under way is looked at often, whatever pause another has grown."""
    tried, other = Tried(None), b"\xb1" * 20
    fill, began_s = tried.served.desk.fill, trio.current_time()

    async def fills_one(*given: Any, **named: Any) -> Any:
        if named["user"] == MAKER:
            raise ChainError("no quotes")
        return await fill(*given, **named)

    tried.served.desk.fill = fills_one
    tried.swaps.want({ACCOUNT: WANTED, other: WantedSwap(replace(TERMS, beneficiary=MAKER), OWNER)})
    with trio.move_on_after(4 * ARRIVAL_LOOK_S - 1):
        await tried.swaps.run()
    assert trio.current_time() - began_s == pytest.approx(4 * ARRIVAL_LOOK_S - 1)
    assert tried.looked.count(f"arrival:{ACCOUNT.hex()}:0") == 4
    pauses = [0.0, ARRIVAL_PAUSE_S, 3 * ARRIVAL_PAUSE_S, 7 * ARRIVAL_PAUSE_S]
    due = [at for at in pauses if at < 4 * ARRIVAL_LOOK_S - 1]
    assert tried.looked.count(f"arrival:{other.hex()}:0") == len(due)
    told = tried.swaps.statistics()
    assert (told.waiting, told.swaps, told.pay_outs, told.failed) == (2, 1, 0, len(due))
    tried.swaps.want({})
    assert (tried.swaps.hint(other), tried.swaps.statistics().waiting) == ("", 0)


async def test_an_arrival_that_cannot_be_served_says_why_and_is_tried_again(
    autojump_clock: MockClock,
) -> None:
    tried = Tried(None)
    take = tried.served.chain.call
    answers = {b"": "it waits for its swap or wrap: ", None: "it is stuck by an error of the venue"}
    for answer, hint in answers.items():
        tried.served.chain.call = _answer(answer)
        await tried.wanted(2 * ARRIVAL_PAUSE_S_MAX)
        assert tried.swaps.hint(ACCOUNT).startswith(hint)
    tried.served.chain.call = take
    await tried.wanted(2 * ARRIVAL_PAUSE_S_MAX)
    assert tried.swaps.hint(ACCOUNT) == "its swap is under way"
    assert len(tried.sent) == 1


async def test_a_node_without_a_latest_block_delays_an_arrival(autojump_clock: MockClock) -> None:
    tried = Tried(None)
    block = tried.served.chain.block
    tried.served.chain.block = _answer(None)
    assert await tried.wanted(1) == []
    assert tried.swaps.hint(ACCOUNT) == "it has arrived, and waits for its swap or wrap"
    assert tried.swaps.statistics().failed == 0
    tried.served.chain.block = block
    assert len(await tried.wanted(2 * ARRIVAL_LOOK_S)) == 1


async def test_outcomes_of_quotes_are_the_owners_who_signed_and_not_the_beneficiarys(
    autojump_clock: MockClock,
) -> None:
    tried = Tried(None)
    await tried.wanted(1)
    assert tried.filled == [{"user": TERMS.beneficiary, "limit": TERMS.least, "account": OWNER}]
