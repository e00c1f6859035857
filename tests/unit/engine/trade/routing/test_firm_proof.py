"""Answers of the chain about quotes that makers have signed: contracts' signatures, traces, and funds."""

from collections.abc import Sequence
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from cambist.codecs.contracts.abi import uint_word
from cambist.codecs.contracts.calldata import allowance, balance_of, remaining, transfer_from
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.codecs.messages.vocabulary import Side
from cambist.config import limits
from cambist.config.errors import ChainError, NodeUnavailable, ServiceUnavailable
from cambist.config.timeouts import FIRM_CHAIN_S, RECENT_BLOCK_S
from cambist.crypto.eip1271 import MAGIC_VALUE4, is_valid_signature_calldata
from cambist.engine.chain.port import At, EthCall, Header
from cambist.engine.trade.routing.firm.firm_parts import Ask
from cambist.engine.trade.routing.firm.firm_proof import prove
from cambist.engine.trade.routing.search.plan import MakerShare
from cambist.feeds.firm.firm_check import CheckedQuote, FirmAsked, FirmFailure, FirmFault
from support.chain.scripted_chain import ScriptedChain
from support.makers.firm_books import DAI, USDC, WETH
from support.makers.timed_makers import EXECUTOR, RFQ, USER

MAKER, OTHER = b"\x0a" * 20, b"\x0b" * 20
ACCEPTED = MAGIC_VALUE4.ljust(32, b"\0")
UNFUNDED = "unfunded: balance or allowance is below makerAmount"
OVERDRAWN = "overdrawn: balance or allowance is below makerAmount"
UNMOVABLE = "unfunded: makerAmount cannot be taken: funds, allowance or token"
TRACED = "invalid: order: filled or cancelled before"
UNSIGNED = "invalid: signature: not the maker's"


class Answering(ScriptedChain):
    """A chain that answers each known call as a test says; each other one is reverted.

    Attributes:
        recent: header of the recent block; by default the latest.
        lacking: hash of a block at which no call is known.
        together: reads that have to be under way at once before any is answered.
    """

    def __init__(self) -> None:
        super().__init__()
        self.answers: dict[EthCall, bytes | Exception] = {}
        self.is_away = self.is_hanging = False
        self.recent = self.head
        self.lacking = b""
        self.together = 1
        self._begun = 0
        self._gathered = trio.Event()

    async def recent_block(self, age_s: float) -> Header:
        assert age_s == RECENT_BLOCK_S
        return self.recent

    async def call_many(
        self, calls: Sequence[EthCall], at: At = None, time_s: int | None = None
    ) -> list[bytes | Exception]:
        self._begun += 1
        if self._begun >= self.together:
            self._gathered.set()
        await self._gathered.wait()
        await trio.lowlevel.checkpoint()
        if at == self.lacking:
            return [ChainError("reverted") for _ in calls]
        if self.is_hanging:
            await trio.sleep_forever()
        if self.is_away:
            raise NodeUnavailable("away")
        return [self.answers.get(call, ChainError("reverted")) for call in calls]

    def expect(self, ask: Ask, *, left: int = 0, moved: bytes | Exception = b"") -> None:
        """Let the RFQ contract answer about the order of a quote, and the token about its transfer."""
        order, quote = ask.order, ask.quote
        assert quote is not None
        transfer = transfer_from(order.maker, EXECUTOR, order.maker_amount)
        self.answers[EthCall(RFQ, remaining(order.maker, quote.digest32))] = uint_word(left)
        self.answers[EthCall(order.maker_asset, transfer, RFQ)] = moved

    def fund(self, token: bytes, maker: bytes, has: int, allows: int) -> None:
        gas_max = limits.CHAIN_TOKEN_GAS_MAX
        self.answers[EthCall(token, balance_of(maker), gas_max=gas_max)] = uint_word(has)
        self.answers[EthCall(token, allowance(maker, RFQ), gas_max=gas_max)] = uint_word(allows)


def a_quote(
    number: int, amount: int = 100, *, token: bytes = USDC, maker: bytes = MAKER, is_proven: bool = True
) -> Ask:
    """A request whose maker has signed an order of its own digest for an amount of a token."""
    request = FirmAsked(WETH, token, Side.SELL, 1, USER, EXECUTOR)
    ask = Ask("alpha", MakerShare("alpha", 1, amount), request, None, 0.0, 0.0)
    order = RfqOrder(number, 0, token, WETH, maker, EXECUTOR, amount, 1)
    ask.quote = CheckedQuote(order, b"signed", bytes([number]) * 32, is_proven)
    return ask


async def outcomes(chain: Answering, *asks: Ask) -> list[str]:
    """Failures of the quotes after the proof; empty for those that stay."""
    scripted: Any = chain
    await prove(scripted, RFQ, asks)
    assert all((ask.quote is None) is (ask.failure is not None) for ask in asks)
    return ["" if ask.failure is None else ask.failure.detail for ask in asks]


@pytest.mark.parametrize(
    ("has", "allows", "told"),
    [
        (100, 100, ""), (101, 2**255, ""), (2**255, 100, ""), (99, 100, UNFUNDED), (100, 99, UNFUNDED),
        (0, 0, UNFUNDED),
    ],
)  # fmt: skip
async def test_funds_of_exactly_the_amount_suffice(has: int, allows: int, told: str) -> None:
    chain, ask = Answering(), a_quote(1)
    chain.expect(ask)
    chain.fund(USDC, MAKER, has, allows)
    assert await outcomes(chain, ask) == [told]


@pytest.mark.parametrize(
    ("has", "told"),
    [
        (140, ["", ""]), (139, [OVERDRAWN, OVERDRAWN]), (100, [OVERDRAWN, OVERDRAWN]),
        (99, [UNFUNDED, OVERDRAWN]), (40, [UNFUNDED, OVERDRAWN]), (39, [UNFUNDED, UNFUNDED]),
    ],
)  # fmt: skip
async def test_quotes_of_one_account_and_token_are_added_up_and_others_are_not(
    has: int, told: list[str]
) -> None:
    """A quote is the maker's fault only where the funds do not cover that quote alone."""
    chain = Answering()
    asks = a_quote(1, 100), a_quote(2, 40), a_quote(3, 500, token=DAI), a_quote(4, 600, maker=OTHER)
    for ask in asks:
        chain.expect(ask)
    chain.fund(USDC, MAKER, has, has)
    chain.fund(DAI, MAKER, 500, 500)
    chain.fund(USDC, OTHER, 600, 600)
    assert await outcomes(chain, *asks) == [*told, "", ""]


async def test_a_token_that_tells_no_number_holds_nothing() -> None:
    chain, ask = Answering(), a_quote(1, 1)
    chain.expect(ask)
    assert await outcomes(chain, ask) == [UNFUNDED]


@pytest.mark.parametrize(
    ("moved", "told"),
    [
        (b"", ""), (uint_word(1), ""), (uint_word(2**255), ""), (uint_word(0), UNMOVABLE),
        (ChainError("paused"), UNMOVABLE),
    ],
)  # fmt: skip
async def test_a_transfer_that_would_fail_is_no_funds(moved: bytes | Exception, told: str) -> None:
    chain, ask = Answering(), a_quote(1)
    chain.expect(ask, moved=moved)
    chain.fund(USDC, MAKER, 100, 100)
    assert await outcomes(chain, ask) == [told]


async def test_a_used_order_is_invalid_and_its_amount_needs_no_funds() -> None:
    chain, asks = Answering(), (a_quote(1), a_quote(2))
    chain.expect(asks[0], left=1)
    chain.expect(asks[1])
    chain.fund(USDC, MAKER, 100, 100)
    assert await outcomes(chain, *asks) == [TRACED, ""]


@pytest.mark.parametrize(
    ("answer", "told"),
    [(ACCEPTED, ""), (uint_word(1), UNSIGNED), (b"", UNSIGNED), (ChainError("reverted"), UNSIGNED)],
)
async def test_a_contract_verifies_its_own_signature_with_the_gas_of_the_rfq_contract(
    answer: bytes | Exception, told: str
) -> None:
    chain, asks = Answering(), (a_quote(1), a_quote(2, maker=OTHER, is_proven=False))
    question = is_valid_signature_calldata(bytes([2]) * 32, b"signed")
    chain.answers[EthCall(OTHER, question, RFQ, gas_max=limits.MAKER_SIGNATURE_GAS_MAX)] = answer
    for ask in asks:
        chain.expect(ask)
        chain.fund(USDC, ask.order.maker, 100, 100)
    assert await outcomes(chain, *asks) == ["", told]


async def test_a_quote_that_has_failed_is_not_asked_about() -> None:
    chain, asks = Answering(), (a_quote(1), a_quote(2, is_proven=False))
    chain.expect(asks[0])
    chain.fund(USDC, MAKER, 100, 100)
    asks[1].fail(FirmFailure(FirmFault.INVALID, "before"))
    assert await outcomes(chain, *asks) == ["", "invalid: before"]


async def test_a_node_that_is_far_away_is_asked_once(autojump_clock: MockClock) -> None:
    chain, ask = Answering(), a_quote(1, is_proven=False)
    question = is_valid_signature_calldata(bytes([1]) * 32, b"signed")
    chain.answers[EthCall(MAKER, question, RFQ, gas_max=limits.MAKER_SIGNATURE_GAS_MAX)] = ACCEPTED
    chain.expect(ask)
    chain.fund(USDC, MAKER, 100, 100)
    chain.together = 3  # the signature, the order with its transfer, and the funds
    assert await outcomes(chain, ask) == [""]
    assert chain.asked == {}, "the recent block is at hand"


@pytest.mark.parametrize(("funds", "told"), [(100, ""), (99, UNFUNDED)])
async def test_a_quote_that_fails_is_judged_by_the_latest_block(funds: int, told: str) -> None:
    """A maker that was funded a moment ago is not at fault."""
    chain, ask = Answering(), a_quote(1)
    chain.expect(ask)
    chain.fund(USDC, MAKER, funds, funds)
    chain.lacking = chain.recent.hash
    chain.grow([])
    assert await outcomes(chain, ask) == [told]
    assert chain.asked == {"block": 1}


@pytest.mark.parametrize("hangs", [True, False])
async def test_where_the_chain_does_not_answer_nothing_is_proven(
    autojump_clock: MockClock, *, hangs: bool
) -> None:
    chain, ask = Answering(), a_quote(1)
    chain.is_hanging, chain.is_away = hangs, not hangs
    with pytest.raises(ServiceUnavailable):
        await outcomes(chain, ask)
    assert trio.current_time() == pytest.approx(FIRM_CHAIN_S if hangs else 0.0)
    assert ask.quote is not None
