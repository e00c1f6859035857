"""The venue's own bids on orders of handlers and on bridge-only ones, and the rests of those that fail."""

from pathlib import Path
from typing import Any

import pytest
import trio

from cambist.codecs.bridges.bridge_terms import (
    SELECTORS,
    AcrossTerms,
    BridgeFee,
    BridgeKind,
    input_of,
    pack_terms,
)
from cambist.codecs.contracts.abi import selector
from cambist.codecs.contracts.delta_calldata import NO_AGENT, Execution, settle, settle_external
from cambist.codecs.eip712_orders.delta import DeltaBridge, DeltaOrder
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.codecs.messages.agent_messages import Notice, NoticeEntry
from cambist.codecs.trading_token import NATIVE_TOKEN
from cambist.config import limits
from cambist.config.errors import Reverted
from cambist.config.limits import BRIDGE_ONLY_GAS_USED
from cambist.config.sections.venue import DeltaSettings
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.chain.port import EthCall
from cambist.engine.store.queries import auction_rounds
from cambist.engine.store.tables import AUCTION_ROUND
from cambist.engine.store.units import row_of
from cambist.engine.trade.delta.auction.auction_record import round_of
from cambist.engine.trade.delta.auction.own_bids import OwnBids
from cambist.engine.trade.delta.bids.agent_rest import AgentFault
from cambist.engine.trade.delta.bids.simulation import Proven, SettlementOutcome
from cambist.engine.trade.delta.orders.document import DeltaDocument
from cambist.engine.trade.delta.orders.live_orders import LiveOrder
from cambist.engine.trade.delta.orders.terms import bridge_only_room, terms_of
from support.delta.auctioning import PlayedAgent, an_auction, on_each
from support.delta.bidding import (
    ALICE,
    DELTA,
    HANDLER,
    ONE,
    RELAYER,
    SIGNATURE,
    USDC,
    USDC_ONE,
    WETH,
    a_delta_order,
    a_round_order,
    an_external_order,
    asked_for,
    hash_of,
)
from support.patience import until
from support.store.stores import a_delta_order as a_stored_order

NAME, BOB = to_checksum(HANDLER), b"\xb0" * 20
SETTINGS = DeltaSettings(rest_s=10, rest_s_max=60)


class Told:
    """Handlers at a time that is set, the agents that were told, and what bridge-only orders pay for gas."""

    def __init__(self, gas: int = 0) -> None:
        self.now_ms = 1_000_000
        self.agents: list[str] = []
        self.gas = gas
        self.own_bids = OwnBids(
            DELTA,
            RELAYER,
            WETH,
            lambda _, units: self.gas * units // BRIDGE_ONLY_GAS_USED,
            SETTINGS,
            lambda *told: self.agents.append(told[0]),
            lambda: self.now_ms,
        )

    def fails(
        self, name: str = NAME, fault: AgentFault | None = AgentFault.REVERTED, *, number: int = 1
    ) -> None:
        """A settlement of the order with this number fails, of an agent or a handler."""
        self.own_bids.tell(name, 1, NoticeEntry(Notice.REVERTED, to_hex(hash_of(number))), fault)

    def rest_s(self, owner: bytes = ALICE) -> float:
        """Seconds that the handler still rests for an owner."""
        until_ms = self.own_bids.rests_until_ms(an_external_order(owner=owner))
        return (until_ms - self.now_ms) / 1_000 if until_ms else 0


def test_a_sale_has_one_bid_on_its_minimum() -> None:
    order = an_external_order()
    (bid,) = Told().own_bids.bids(asked_for(order))
    (part,) = bid.parts
    assert (bid.agent, part.promised, part.given, part.steps) == (NAME, 2_400 * USDC_ONE, 0, ())
    execution = Execution(2_400 * USDC_ONE, 0, (), (), NO_AGENT)
    assert bid.calldata == settle_external(order, SIGNATURE, ONE, execution)
    assert bid.owners_calldata, "the error of the same settlement is the handler's"


@pytest.mark.parametrize(
    ("expected", "fee_bps", "given"),
    [
        (ONE, 0, [ONE, 11 * ONE // 10]),
        (0, 0, [11 * ONE // 10]),
        (11 * ONE // 10, 0, [11 * ONE // 10]),
        (2 * ONE, 0, [11 * ONE // 10]),
        (101 * ONE, 100, None),
    ],
)
def test_a_purchase_is_tried_at_its_expected_cost_and_at_its_maximum(
    expected: int, fee_bps: int, given: list[int] | None
) -> None:
    fee = pack_partner_and_fee(PartnerAndFee(ALICE, fee_bps, partner_takes_surplus=False, cap_surplus=True))
    order = an_external_order(buys=True, expected_amount=expected, partner_and_fee=fee)
    bids = list(Told().own_bids.bids(asked_for(order)))
    for bid in bids:
        (part,) = bid.parts
        cost = part.given + part.given * fee_bps // 10_000
        assert cost <= part.promised <= order.src_amount
    if given is not None:
        assert [bid.parts[0].given for bid in bids] == given
    assert bids[-1].parts[0].promised == order.src_amount


FEE = BridgeFee(500, 30_000)
TO_CHAIN_10 = DeltaBridge(
    SELECTORS[BridgeKind.ACROSS], 10, USDC, 0, pack_terms(AcrossTerms(FEE, 3_600, bytes(20), 0))
)


def a_bridge_only_order(*, buys: bool = False, fee_bps: int = 0, **changed: Any) -> DeltaOrder:
    """Sends 2,500 USDC, of which 2,400 arrive at least; or has 2,400 arrive for 2,500 at most."""
    fee = pack_partner_and_fee(PartnerAndFee(ALICE, fee_bps, partner_takes_surplus=True, cap_surplus=False))
    terms: dict[str, Any] = {"src_token": USDC, "src_amount": 2_500 * USDC_ONE, "bridge": TO_CHAIN_10}
    terms |= {"dest_amount": 2_400 * USDC_ONE, "expected_amount": 0, "partner_and_fee": fee}
    return a_delta_order(buys=buys, **terms | changed)


@pytest.mark.parametrize("gas", [0, 3 * USDC_ONE])
@pytest.mark.parametrize("fee_bps", [0, 100])
def test_all_of_a_bridge_only_sale_is_bid_on_but_its_gas(fee_bps: int, gas: int) -> None:
    order = a_bridge_only_order(fee_bps=fee_bps)
    (bid,) = Told(gas).own_bids.bids(a_round_order(1, order))
    (part,) = bid.parts
    sent = (2_500 * USDC_ONE - gas) * (10_000 - fee_bps) // 10_000
    assert (bid.agent, part.promised, part.given, part.receiver) == (to_checksum(DELTA), sent, gas, RELAYER)
    assert part.pays_gas
    assert bid.calldata == settle(
        order, SIGNATURE, order.src_amount, Execution(sent, gas, (), (), NO_AGENT, RELAYER)
    )


@pytest.mark.parametrize("gas", [0, 3 * USDC_ONE])
def test_a_bridge_only_purchase_costs_what_has_to_enter_and_its_gas(gas: int) -> None:
    needed = input_of(FEE, 0, 2_400 * USDC_ONE) + gas
    (bid,) = Told(gas).own_bids.bids(a_round_order(1, a_bridge_only_order(buys=True, fee_bps=100)))
    (part,) = bid.parts
    assert (part.given, part.receiver) == (gas, RELAYER)
    assert part.promised == needed + needed // 100 + 1


def test_a_simulation_that_takes_more_gas_raises_the_next_bids_payment_alone() -> None:
    told = Told(gas=3 * USDC_ONE)
    asked, other = (a_round_order(number, a_bridge_only_order()) for number in (1, 2))
    (bid,) = told.own_bids.bids(asked)
    list(told.own_bids.bids(other))
    for units, paid in ((2 * BRIDGE_ONLY_GAS_USED, 6.75), (BRIDGE_ONLY_GAS_USED // 2, 3)):
        told.own_bids.simulated(Proven(bid, (SettlementOutcome(0, 0, units),)))
        given = [
            candidate.parts[0].given for order in (asked, other) for candidate in told.own_bids.bids(order)
        ]
        assert given == [paid * USDC_ONE, 3 * USDC_ONE]


@pytest.mark.parametrize("gas", [0, 3 * USDC_ONE])
def test_what_enters_a_bridge_is_known_of_a_bridge_only_sale(gas: int) -> None:
    own = Told(gas).own_bids
    document = DeltaDocument("Order", b"", SIGNATURE)

    def entering(order: DeltaOrder) -> int | None:
        return own.entering(LiveOrder(a_stored_order(1), order, document, terms_of(order)))

    assert entering(a_bridge_only_order()) == 2_500 * USDC_ONE - gas
    assert entering(a_bridge_only_order(buys=True)) is None
    assert entering(a_delta_order(bridge=TO_CHAIN_10)) is None


@pytest.mark.parametrize("buys", [False, True])
def test_gas_takes_no_more_than_the_limit_leaves(*, buys: bool) -> None:
    asked = a_round_order(1, a_bridge_only_order(buys=buys, fee_bps=100))
    (bid,) = Told(10**6 * USDC_ONE).own_bids.bids(asked)
    (part,) = bid.parts
    assert part.promised == part.limit
    assert 0 < part.given == bridge_only_room(asked.terms, asked.part) < 100 * USDC_ONE


def test_deposited_native_tokens_enter_a_bridge_wrapped() -> None:
    terms: dict[str, Any] = {"src_token": NATIVE_TOKEN, "dest_token": WETH, "src_amount": ONE}
    swapped: dict[str, Any] = terms | {"dest_token": USDC}
    own = Told().own_bids
    assert own.trader_of(a_bridge_only_order(**terms)) == DELTA
    assert own.trader_of(a_bridge_only_order(**swapped)) is None
    assert own.trader_of(a_bridge_only_order(src_token=WETH)) is None


@pytest.mark.parametrize("buys", [False, True])
def test_a_limit_that_the_fees_do_not_leave_has_no_bid(*, buys: bool) -> None:
    order = a_bridge_only_order(buys=buys, src_amount=2_400 * USDC_ONE)
    assert list(Told().own_bids.bids(a_round_order(1, order))) == []


def test_a_bridge_that_fails_rests_for_the_orders_owner_alone() -> None:
    told = Told()
    for number, owner in ((1, ALICE), (2, BOB)):
        list(told.own_bids.bids(a_round_order(number, a_bridge_only_order(owner=owner))))
    told.fails(to_checksum(DELTA), number=1)
    assert told.own_bids.rests_until_ms(a_bridge_only_order()) == told.now_ms + 10_000
    assert told.own_bids.rests_until_ms(a_bridge_only_order(owner=BOB)) == 0
    assert told.rest_s() == 0
    assert told.agents == []


def test_other_orders_have_no_bid_of_the_venues() -> None:
    for order in (a_delta_order(), a_delta_order(bridge=TO_CHAIN_10)):
        assert list(Told().own_bids.bids(a_round_order(1, order))) == []


def test_a_handler_rests_longer_after_each_failure_and_a_delivery_takes_one_back() -> None:
    told = Told()
    list(told.own_bids.bids(asked_for(an_external_order())))
    assert told.rest_s() == 0
    told.fails()
    assert told.rest_s() == 10
    told.now_ms += 10_000
    assert told.rest_s() == 0
    told.fails()
    assert told.rest_s() == 20
    told.now_ms += 20_000
    told.own_bids.tell(NAME, 1, NoticeEntry(Notice.SETTLED, to_hex(hash_of(1))), None)
    told.fails()
    assert told.rest_s() == 20
    assert told.agents == []


def test_the_orders_of_one_owner_rest_a_handler_for_no_other() -> None:
    """Else any owner could make orders that fail when they are mined, and stop all others' at no cost."""
    told = Told()
    for number, owner in ((1, ALICE), (2, BOB)):
        list(told.own_bids.bids(asked_for(an_external_order(owner=owner), number)))
    told.fails(number=1)
    assert (told.rest_s(ALICE), told.rest_s(BOB)) == (10, 0)
    told.fails(number=2)
    assert told.rest_s(BOB) == 10


def test_the_owners_failures_and_those_of_agents_rest_no_handler() -> None:
    told = Told()
    list(told.own_bids.bids(asked_for(an_external_order())))
    told.fails(fault=None)
    for number in (1, 2):  # also of an order on which the venue has bid: a doubt names the order that settled
        told.fails("ann", number=number)
    assert told.rest_s() == 0
    assert told.agents == ["ann", "ann"]


def test_a_bounded_number_of_handlers_is_remembered_the_last_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cambist.engine.trade.delta.auction.own_bids.OWN_BIDS_KEPT_MAX", 2)
    assert limits.OWN_BIDS_KEPT_MAX > 2
    told = Told()
    orders = [an_external_order(handler=bytes([number]) * 20) for number in (1, 2)]
    for number, order in enumerate(orders, start=1):
        list(told.own_bids.bids(asked_for(order, number)))
        told.fails(to_checksum(order.handler), number=number)
    list(told.own_bids.bids(asked_for(orders[0], 1)))
    list(told.own_bids.bids(asked_for(an_external_order(), 3)))
    assert told.own_bids.rests_until_ms(orders[0])
    assert not told.own_bids.rests_until_ms(orders[1])


# --- Rounds without agents ------------------------------------------------------------------------------


async def test_an_order_of_a_handler_is_won_by_the_venues_bid_in_a_round_without_agents(
    tmp_path: Path,
) -> None:
    ann = PlayedAgent(on_each)
    async with an_auction(tmp_path, ann=ann) as auction:
        asked = asked_for(an_external_order())
        await auction.submitted(asked)
        await until(lambda: auction.live(asked).settling is not None)
        await until(lambda: auction.auctioneer.statistics().open_rounds == 0)
        told = auction.auctioneer.statistics()
        assert (told.rounds, told.won, told.void) == (1, 1, 0)
        assert ann.asked == []
        assert ann.told == []
        (rows,) = await auction.store.read(auction_rounds(auction.auctioneer._ids._last))
        assert [row_of(AUCTION_ROUND, values).winner for values in rows] == [NAME]


async def test_an_order_whose_handler_fails_in_the_simulation_pauses_and_names_the_handler(
    tmp_path: Path,
) -> None:
    async def refuses(calls: list[EthCall], *_: Any) -> list[Exception]:
        await trio.lowlevel.checkpoint()
        return [Reverted("StepFailed", selector("StepFailed(uint256,bytes)")) for _ in calls]

    async with an_auction(tmp_path) as auction:
        chain: Any = auction.auctioneer._served.chain
        chain.call_many = refuses
        asked = asked_for(an_external_order())
        await auction.submitted(asked)
        await until(lambda: auction.auctioneer.statistics().waiting == 1)
        told = auction.auctioneer.statistics()
        assert (told.rounds, told.won, told.void, told.ready) == (1, 0, 0, 0)
        (rows,) = await auction.store.read(auction_rounds(auction.auctioneer._ids._last))
        (bid,) = round_of(row_of(AUCTION_ROUND, rows[0])).order.bids
        assert (bid.agent, bid.notice) == (NAME, Notice.REVERTED)


async def test_an_order_whose_handler_takes_too_long_pauses_as_one_that_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def hangs(*_: Any) -> list[bytes]:
        await trio.sleep_forever()
        raise AssertionError

    monkeypatch.setattr("cambist.engine.trade.delta.auction.simulating.AGENT_SIMULATION_S", 0.01)
    async with an_auction(tmp_path) as auction:
        chain: Any = auction.auctioneer._served.chain
        chain.call_many = hangs
        asked = asked_for(an_external_order())
        await auction.submitted(asked)
        await until(lambda: auction.auctioneer.statistics().rounds >= 1)
        await until(lambda: auction.auctioneer.statistics().open_rounds == 0)
        told = auction.auctioneer.statistics()
        assert (told.rounds, told.waiting, told.ready) == (1, 1, 0), "it is not due again at once"


async def test_an_owner_whose_code_takes_long_delays_the_transfers_of_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """All bridge-only orders have one name for their bidder; each owner has its own time."""
    monkeypatch.setattr("cambist.engine.trade.delta.auction.simulating.AGENT_SIMULATION_S", 0.05)
    async with an_auction(tmp_path) as auction:
        chain: Any = auction.auctioneer._served.chain
        answers = chain.call_many

        async def hangs_for_alice(calls: list[EthCall], *where: Any) -> list[bytes]:
            if any(ALICE in call.data for call in calls):
                await trio.sleep_forever()
            found: list[bytes] = await answers(calls, *where)
            return found

        chain.call_many = hangs_for_alice
        slow, other = (
            a_round_order(number, a_bridge_only_order(owner=owner, beneficiary=owner, partner_and_fee=0))
            for number, owner in ((1, ALICE), (2, BOB))
        )
        await auction.submitted(slow, other)
        await until(lambda: auction.auctioneer.statistics().waiting == 1)
        assert auction.live(other).settling is not None
        assert auction.live(slow).settling is None
