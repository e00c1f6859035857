"""Callers that may have makers sign, and the amount that they may leave unfilled: an attack on stock."""

import itertools
from typing import Any

import pytest

from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.codecs.eip712_orders.swap_consent import SWAP_CONSENT, SwapConsent, consent_separator
from cambist.config import limits
from cambist.config.errors import (
    InsufficientAllowance,
    InsufficientBalance,
    InvalidInput,
    InvalidSignature,
    NoRoute,
    RateLimited,
    RequestError,
    Reverted,
)
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_65
from cambist.engine.host.admission.budgets import Stake
from cambist.engine.host.admission.ledger import Ledger
from cambist.engine.trade.market.unfilled import Asker, UnfilledSwaps
from cambist.engine.trade.routing.firm.firm_parts import HeldQuote
from cambist.engine.trade.routing.firm.stock import Claimant, StockClaim, StockShares
from support.venue.admitting import signatures
from support.venue.market_place import (
    ANYBODY,
    CHAIN_ID,
    KEYED,
    MAKERS,
    NOW_MS,
    ONE,
    ROUTER,
    STRANGER,
    USDC,
    USER_PLACES,
    WETH,
    Shop,
    a_shop,
)

SELL = f"srcToken=WETH&destToken=USDC&network={CHAIN_ID}&amount={ONE}&version=6.2"
BODY = {"srcAmount": str(ONE), "slippage": 100}
UNCHECKED = "ignoreChecks=true"
LIFE_MS = 120_000
KEY = SigningKey(b"\x05" * 32)
USER = KEY.address
PERMIT = to_hex(
    address_word(USER)
    + address_word(ROUTER)
    + b"".join(map(uint_word, (ONE, NOW_MS // 1_000 + 60, 27, 1, 1)))
)
OTHER = Asker("network 198.51.100", False, 2)


_users = itertools.count(1)


def another() -> bytes:
    """A user whom no request named before, with funds and approval."""
    return next(_users).to_bytes(20, "big")


async def build(
    shop: Shop,
    asker: Asker = ANYBODY,
    query: str = "",
    now_ms: int = NOW_MS,
    user: bytes = USER,
    *,
    native: bool = False,
    **members: Any,
) -> None:
    """POST /transactions for a sale of one WETH, or ETH, with these members besides."""
    route = shop.prices(SELL.replace("srcToken=WETH", "srcToken=ETH") if native else SELL, now_ms)
    body = BODY | {"userAddress": to_checksum(user)} | members
    await shop.build(route, body, query, now_ms=now_ms, asker=asker)


def a_consent(
    amount: int = ONE,
    deadline: int = NOW_MS // 1_000 + 60,
    key: SigningKey = KEY,
    router: bytes = ROUTER,
    dest: bytes = USDC,
) -> dict[str, Any]:
    """The member `consent`, signed by a key."""
    values = SwapConsent(USER, WETH, dest, amount, deadline)
    digest = SWAP_CONSENT.compiled.digest_for(consent_separator(CHAIN_ID, router))(values)
    signature = to_65(*key.sign(digest))
    return {"srcAmount": str(amount), "deadline": deadline, "signature": f"0x{signature.hex()}"}


def stakes(shop: Shop) -> tuple[Stake, ...]:
    """Stakes that the caller of the last fill has shown."""
    claimant = shop.firm.claimants[-1]
    assert claimant is not None
    return claimant.stakes


async def swap(shop: Shop, asker: Asker) -> None:
    query = f"{SELL}&userAddress={to_checksum(USER)}&slippage=100"
    await shop.desk.swap(query.encode(), NOW_MS, asker, signatures())


async def test_without_a_key_makers_sign_only_for_who_could_fill() -> None:
    shop = a_shop()
    shop.chain.funds[USER] = (ONE - 1, ONE)
    with pytest.raises(InsufficientBalance):
        await build(shop)
    shop.chain.funds[USER] = (ONE, ONE - 1)
    with pytest.raises(InsufficientAllowance):
        await build(shop)
    assert shop.firm.asked == []
    await build(shop, KEYED, UNCHECKED)
    await swap(shop, KEYED)
    assert len(shop.firm.asked) == 2


@pytest.mark.parametrize("funds", [(ONE - 1, ONE), (ONE, ONE - 1), (0, 0)])
async def test_without_checks_the_share_of_callers_who_show_nothing_serves_those_who_lack(
    funds: tuple[int, int],
) -> None:
    """A page shows the transaction before the user approves; a consent is worth nothing without the funds."""
    shop = a_shop()
    shop.chain.funds[USER] = funds
    await build(shop, query=UNCHECKED)
    await swap(shop, OTHER)
    await build(shop, query=UNCHECKED, consent=a_consent())
    shop.firm.has_no_share = True
    with pytest.raises(RateLimited, match="nothing left"):
        await build(shop, query=UNCHECKED)
    assert {one.stakes for one in shop.firm.claimants if one is not None} == {(Stake.NOTHING,)}
    with pytest.raises(InvalidInput, match="permit"):
        await build(shop, query=UNCHECKED, permit="0x1234")


async def test_a_past_swap_shows_nothing_for_a_user_who_cannot_pay() -> None:
    shop = a_shop()
    await build(shop)
    shop.chain.left[(1).to_bytes(32, "big")] = 1
    shop.firm.has_no_share = True
    with pytest.raises(RateLimited):
        await build(shop)  # the venue has read that the first one is filled
    shop.firm.has_no_share = False
    shop.chain.funds[USER] = (0, 0)
    await build(shop, query=UNCHECKED)
    assert stakes(shop) == (Stake.NOTHING,)


async def test_a_caller_without_a_key_has_a_few_swaps_that_nobody_filled() -> None:
    shop = a_shop()
    for _ in range(ANYBODY.places):
        await build(shop, user=another())
    with pytest.raises(RateLimited) as told:
        await swap(shop, ANYBODY)
    assert told.value.retry_after_s == LIFE_MS // 1_000 + 1
    assert "2 swaps are signed and not filled" in told.value.detail
    await build(shop, KEYED)
    await build(shop, OTHER)
    assert len(shop.firm.asked) == ANYBODY.places + 2


async def test_a_page_that_builds_at_each_price_keeps_its_place_and_all_its_quotes_reserve_stock() -> None:
    shop = a_shop()
    builds = 5 * ANYBODY.places
    for _ in range(builds):
        await build(shop)
    assert shop.firm.stock.reserved(MAKERS[0], USDC, NOW_MS)[0] == builds
    await build(shop, user=another())
    with pytest.raises(RateLimited, match="fill one, wait for the end of one, or send an API key"):
        await build(shop, user=another())
    await build(shop)


async def test_a_replaced_swap_that_is_filled_gives_back_its_stock() -> None:
    shop = a_shop()
    for _ in range(3):
        await build(shop)
    shop.chain.left[(1).to_bytes(32, "big")] = 1  # the first of them
    shop.firm.has_no_share = True
    with pytest.raises(RateLimited):
        await build(shop)
    assert shop.firm.stock.reserved(MAKERS[0], USDC, NOW_MS)[0] == 2
    assert stakes(shop) == (Stake.CONSENT, Stake.ALLOWANCE, Stake.NOTHING)


async def test_a_user_that_requests_only_name_loses_nothing() -> None:
    """More builds name the user than a user has places; the user's own, with its permit, is built."""
    shop = a_shop()
    for number in range(3 * USER_PLACES):
        await build(shop, Asker(f"network {number}", False, 2))
    await build(shop, OTHER, consent=a_consent())


async def test_a_user_who_has_signed_has_a_few_from_whatever_network() -> None:
    shop = a_shop()
    for number in range(USER_PLACES):
        await build(shop, Asker(f"network {number}", False, 2), consent=a_consent())
    with pytest.raises(RateLimited, match="3 swaps are signed and not filled"):
        await build(shop, ANYBODY, consent=a_consent())
    await build(shop, ANYBODY)
    await build(shop, KEYED)


async def test_the_funds_of_a_user_are_shown_once() -> None:
    """Each swap alone is within the user's balance, two together are not."""
    shop = a_shop()
    shop.chain.funds[USER] = (2 * ONE - 1, 2 * ONE)
    await build(shop, consent=a_consent())
    with pytest.raises(InsufficientBalance, match=f"got {2 * ONE - 1}"):
        await build(shop, OTHER, consent=a_consent())
    shop.chain.left[(1).to_bytes(32, "big")] = 1
    await build(shop, consent=a_consent())


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"amount": ONE - 1}, f"consent.srcAmount: expected at least {ONE}"),
        ({"deadline": NOW_MS // 1_000 - 1}, "consent.deadline: expected 1700000000 to"),
        ({"deadline": NOW_MS // 1_000 + 86_401}, "consent.deadline: expected 1700000000 to"),
        ({"key": SigningKey(b"\x07" * 32)}, "signed this, not the owner"),
        ({"router": STRANGER}, "signed this, not the owner"),
        ({"dest": WETH}, "signed this, not the owner"),
    ],
)
async def test_a_consent_to_something_else_is_refused(changed: dict[str, Any], told: str) -> None:
    shop = a_shop()
    with pytest.raises(RequestError, match=told):
        await build(shop, consent=a_consent(**changed))
    assert shop.firm.asked == []


@pytest.mark.parametrize("ahead_s", [0, 86_400])
async def test_a_consent_is_taken_to_its_last_second_and_for_a_day(ahead_s: int) -> None:
    shop = a_shop()
    await build(shop, consent=a_consent(deadline=NOW_MS // 1_000 + ahead_s))
    assert Stake.CONSENT in stakes(shop)


async def test_a_contract_consents_by_its_own_rule() -> None:
    shop = a_shop()
    consent = a_consent() | {"signature": "0x1234"}
    with pytest.raises(InvalidSignature):
        await build(shop, consent=consent)
    shop.chain.code_of[USER] = b"\x60"
    with pytest.raises(InvalidSignature):
        await build(shop, consent=consent)
    shop.chain.signed[USER] = b"\x12\x34"
    await build(shop, consent=consent)
    assert shop.firm.claimants[-1] == Claimant(
        ANYBODY.name, USER, (Stake.CONSENT, Stake.ALLOWANCE, Stake.NOTHING)
    )


async def test_what_a_caller_has_shown_decides_its_share() -> None:
    """A permit that the token takes, an allowance, a filled swap of the same two, a native balance, a key."""
    shop = a_shop()
    await build(shop)
    assert stakes(shop) == (Stake.ALLOWANCE, Stake.NOTHING)
    shop.chain.permits[USER] = b""
    await build(shop, permit=PERMIT)
    assert stakes(shop) == (Stake.CONSENT, Stake.NOTHING)
    shop.chain.left[(1).to_bytes(32, "big")] = 1
    shop.firm.has_no_share = True  # then the venue reads what is filled
    with pytest.raises(RateLimited):
        await build(shop)
    assert stakes(shop) == (Stake.CONSENT, Stake.ALLOWANCE, Stake.NOTHING)
    shop.firm.has_no_share = False
    await build(shop, OTHER)
    assert stakes(shop) == (Stake.ALLOWANCE, Stake.NOTHING)
    await build(shop, Asker("network 203.0.113", False, 2), native=True)
    assert stakes(shop) == (Stake.NOTHING,)
    await build(shop, KEYED)
    assert shop.firm.claimants[-1] is None


async def test_a_swap_that_was_filled_in_time_counts_as_such_after_its_quotes_have_expired() -> None:
    """Its caller hits no bound before that: the share and the consent are learned later."""
    shop = a_shop()
    await build(shop)
    later_ms = NOW_MS + LIFE_MS + 1_000
    shop.firm.has_no_share = True
    shop.chain.left[(1).to_bytes(32, "big")] = 1
    with pytest.raises(RateLimited):
        await build(shop, now_ms=later_ms)
    assert stakes(shop) == (Stake.CONSENT, Stake.ALLOWANCE, Stake.NOTHING)


async def test_a_share_that_is_used_up_is_tried_again_once_a_swap_is_filled() -> None:
    shop = a_shop()
    await build(shop)
    shop.firm.has_no_share = True
    with pytest.raises(RateLimited):
        await build(shop)
    assert len(shop.firm.claimants) == 2
    shop.chain.left[(1).to_bytes(32, "big")] = 1
    with pytest.raises(RateLimited):
        await build(shop)
    assert len(shop.firm.claimants) == 4
    assert shop.firm.claimants[-2:] == [
        Claimant(ANYBODY.name, USER, (Stake.ALLOWANCE, Stake.NOTHING)),
        Claimant(ANYBODY.name, USER, (Stake.CONSENT, Stake.ALLOWANCE, Stake.NOTHING)),
    ]


async def test_without_a_quote_that_could_be_filled_a_share_that_is_used_up_is_tried_once() -> None:
    shop = a_shop()
    shop.firm.has_no_share = True
    with pytest.raises(RateLimited):
        await build(shop)
    assert len(shop.firm.claimants) == 1


async def test_who_is_refused_is_refused_again_and_an_unread_order_is_not_filled() -> None:
    shop = a_shop()
    shop.chain.left[(1).to_bytes(32, "big")] = Reverted("no answer", b"")
    for _ in range(ANYBODY.places):
        await build(shop, user=another())
    for _ in range(2):
        with pytest.raises(RateLimited):
            await build(shop, user=another())


async def test_a_filled_swap_counts_as_the_users_signature_for_a_day() -> None:
    shop = a_shop()
    await build(shop)
    for _ in range(ANYBODY.places - 1):
        await build(shop, user=another())
    shop.chain.left[(1).to_bytes(32, "big")] = 1
    await build(shop, user=another())
    day_ms = 1_000 * limits.VENUE_SETTLED_CONSENT_S
    await build(shop, now_ms=NOW_MS + day_ms - 1_000)
    assert stakes(shop) == (Stake.CONSENT, Stake.ALLOWANCE, Stake.NOTHING)
    await build(shop, now_ms=NOW_MS + day_ms)
    assert stakes(shop) == (Stake.ALLOWANCE, Stake.NOTHING)


async def test_what_expires_makes_room() -> None:
    shop = a_shop()
    for _ in range(ANYBODY.places):
        await build(shop, user=another())
    with pytest.raises(RateLimited):
        await build(shop, now_ms=NOW_MS + LIFE_MS)
    await build(shop, now_ms=NOW_MS + LIFE_MS + 1_000)


async def test_what_expires_makes_room_behind_a_swap_that_is_valid_longer() -> None:
    shop = a_shop()
    expiry_s, shop.firm._expiry_s = shop.firm._expiry_s, NOW_MS // 1_000 + 600
    await build(shop, KEYED)
    shop.firm._expiry_s = expiry_s
    for _ in range(ANYBODY.places):
        await build(shop)
    await build(shop, now_ms=NOW_MS + LIFE_MS + 1_000)


@pytest.mark.parametrize(("left", "is_filled"), [(1, True), (ONE // 10 + 1, True), (ONE // 10 + 2, False)])
async def test_what_is_filled_makes_room_and_a_drop_of_it_does_not(left: int, *, is_filled: bool) -> None:
    """`left` is the RFQ contract's number: 1 for a closed order, else the remaining amount plus 1."""
    shop = a_shop()
    for _ in range(ANYBODY.places):
        await build(shop, user=another())
    shop.chain.left[(1).to_bytes(32, "big")] = left
    if is_filled:
        await build(shop, user=another())
    with pytest.raises(RateLimited):
        await build(shop, user=another())


async def test_a_swap_that_is_filled_gives_back_its_makers_stock() -> None:
    shop = a_shop()
    for _ in range(2):
        await build(shop, user=another())
    assert shop.firm.stock.reserved(MAKERS[0], USDC, NOW_MS)[0] == 2
    shop.chain.left[(1).to_bytes(32, "big")] = 1
    await build(shop, user=another())
    assert shop.firm.stock.reserved(MAKERS[0], USDC, NOW_MS)[0] == 2


def test_of_a_filled_swap_the_stock_of_its_filled_quotes_alone_comes_back() -> None:
    ledger = Ledger()
    stock = StockShares(ledger, CHAIN_ID)
    unfilled = UnfilledSwaps(ledger, CHAIN_ID, stock, USER_PLACES)
    swap = unfilled.begin(ANYBODY, USER, (WETH, USDC), None, NOW_MS // 1_000)
    for number, part_ppm in enumerate((1_000, 20_000)):
        claim = stock.claim(None, "alpha", WETH, part_ppm, NOW_MS)
        assert isinstance(claim, StockClaim)
        stock.keep(claim, NOW_MS // 1_000 + 60)
        swap.quotes.append(HeldQuote(NOW_MS // 1_000 + 60, b"", bytes([number]) * 32, 1, claim))
    assert not unfilled.free_filled([swap], {b"\x07" * 32}, NOW_MS // 1_000)
    assert stock.reserved("alpha", WETH, NOW_MS)[0] == 21_000
    assert unfilled.free_filled([swap], {bytes(32)}, NOW_MS // 1_000)
    assert stock.reserved("alpha", WETH, NOW_MS)[0] == 20_000


def test_of_too_many_users_that_have_settled_the_one_of_longest_ago_is_forgotten(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(limits, "VENUE_SETTLED_CONSENTS_MAX", 2)
    ledger, now_s = Ledger(), NOW_MS // 1_000
    unfilled = UnfilledSwaps(ledger, CHAIN_ID, StockShares(ledger, CHAIN_ID), USER_PLACES)
    users = [bytes([number]) * 20 for number in (1, 2, 1, 3)]
    for user in users:
        swap = unfilled.begin(ANYBODY, user, (WETH, USDC), None, now_s)
        swap.quotes.append(HeldQuote(now_s + 60, b"", bytes(32), 1))
        assert unfilled.free_filled([swap], {bytes(32)}, now_s)
    assert [unfilled.has_settled(ANYBODY, user, now_s) for user in users] == [True, False, True, True]


async def test_a_swap_for_which_nobody_signs_takes_no_place() -> None:
    shop = a_shop()
    shop.firm.is_silent = True
    for _ in range(10):
        with pytest.raises(NoRoute):
            await build(shop)
    shop.firm.is_silent = False
    for _ in range(ANYBODY.places):
        await build(shop)


async def test_what_is_over_is_forgotten_though_its_caller_never_comes_back() -> None:
    shop = a_shop()
    unfilled = shop.desk.unfilled[CHAIN_ID]
    for number in range(40):
        await build(shop, Asker(f"network {number}", False, 2), user=(number + 1).to_bytes(20, "big"))
    assert len(unfilled) == 40
    for number in range(20):
        await build(shop, KEYED, now_ms=NOW_MS + LIFE_MS + 1_000 + number)
    assert len(unfilled) == 1
