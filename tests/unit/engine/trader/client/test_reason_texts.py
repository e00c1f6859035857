"""Reasons why an order waits, with amounts as people read them."""

from cambist.codecs.messages.auction_messages import ExplainedReason, ReasonAmount
from cambist.codecs.messages.resource_messages import TokenEntry
from cambist.engine.trader.client.listing import reason_text

WETH = TokenEntry(address="0x" + "aa" * 20, symbol="WETH", decimals=18, network=1)
USDC = TokenEntry(address="0x" + "bB" * 20, symbol="USDC", decimals=6, network=1)
TOKENS = {(1, token.address.lower()): token for token in (WETH, USDC)}


def reason(text: str, *amounts: tuple[str, TokenEntry]) -> ExplainedReason:
    told = tuple(ReasonAmount(amount, token.address) for amount, token in amounts)
    return ExplainedReason("resting", text, told)


def test_amounts_are_whole_tokens_in_the_order_of_the_text() -> None:
    told = reason("it sells 5000000 for 5000000, and 25 are 1", ("5000000", USDC), ("5000000", WETH))
    assert reason_text(told, 1, TOKENS) == "resting: it sells 5 USDC for 0.000000000005 WETH, and 25 are 1"


def test_a_number_within_a_number_stays() -> None:
    told = reason("15000000 or 5000000", ("5000000", USDC))
    assert reason_text(told, 1, TOKENS) == "resting: 15000000 or 5 USDC"


def test_an_amount_of_another_chain_is_of_that_chain_s_token() -> None:
    amounts = ReasonAmount("7000000", USDC.address, 10), ReasonAmount("5000000", USDC.address)
    told = ExplainedReason("swapDue", "7000000 or 5000000", amounts)
    there = TokenEntry(address=USDC.address, symbol="FAR", decimals=5, network=10)
    tokens = TOKENS | {(10, USDC.address.lower()): there}
    assert reason_text(told, 1, tokens) == "swapDue: 70 FAR or 5 USDC"
    assert reason_text(told, 1, TOKENS) == "swapDue: 7000000 or 5 USDC"


def test_a_token_that_the_venue_does_not_list_stays_in_raw_units() -> None:
    assert reason_text(reason("it sells 7", ("7", USDC)), 1, {}) == "resting: it sells 7"
    assert "\n" not in reason_text(ExplainedReason("late", "two\nlines"), 1, {})
