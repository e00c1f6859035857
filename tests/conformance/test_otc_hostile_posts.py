"""POST /ft/p2p/{chainId} by those who mean harm: drafts in others' names, tokens of their own."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.config import limits
from cambist.config.sections.venue import Rate, RateTier
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.holdings import HoldingQuestion, holdings
from cambist.engine.trade.otc import endpoints as otc
from support.chain.evm_programs import assembled, deploys
from support.chain.world import USDC, World
from support.contracts.rfq_stories import a_wallet
from support.counted_signatures import CountedChain, counted_recoveries
from support.otc.otc_front import FILLABLE, OPERATOR_KEY, P2P, an_otc_front

GARBAGE = b"\x01" * 100
GAS_LEFT = "GAS 0x40 MSTORE 32 0x40 RETURN"
"""A token that tells how much gas it has been given, whatever it is asked."""
NO_ALLOWANCE = "CALLDATASIZE 36 EQ @told JUMPI 1 1 REVERT told: 5 0x40 MSTORE 32 0x40 RETURN"
"""Token code that answers questions for balances and refuses calls of the length of an allowance question."""


async def a_contract(world: World, code: str) -> bytes:
    """A contract that is this program."""
    receipt = await world.send(world.owner, b"", deploys(assembled(code)))
    assert receipt.contract is not None
    return receipt.contract


# --- Tokens that answer whatever their author likes -------------------------------------------------------

RICH = "128 2 EXP 0x40 MSTORE 32 0x40 RETURN"
"""Token code that answers 2^128 to every call."""


@pytest.mark.parametrize("endless", [False, True])
async def test_a_token_of_ones_own_fills_no_more_than_its_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, endless: bool
) -> None:
    """Free keys, each funded by the contract: before, 200 of 200 orders without expiry were taken."""
    monkeypatch.setattr(limits, "OTC_LIVE_UNLISTED_ENDLESS_MAX" if endless else "OTC_LIVE_UNLISTED_MAX", 5)
    monkeypatch.setattr(limits, "OTC_LIVE_UNLISTED_PER_MAKER_MAX", 3)
    async with an_otc_front(tmp_path) as front:
        world = front.world
        token = await a_contract(world, RICH)
        later_s = await world.now_s() + 3_600

        def fake(key: SigningKey, expiry_s: int) -> RfqOrder:
            return front.an_order(maker=key.address, maker_asset=token, expiry=expiry_s)

        keys = [SigningKey(bytes([number]) * 32) for number in (1, 2, 3)]
        expiry_s = 0 if endless else later_s
        for key in keys[:2]:
            for _ in range(3 if key is keys[0] else 2):
                assert (await front.posted(fake(key, expiry_s), key))["state"] == "PENDING"
        refusal = await front.fault(fake(keys[0], expiry_s), keys[0])
        assert refusal[:2] == (400, "TooManyOpenOrders")
        assert "maker: expected fewer than 3 orders of unlisted tokens, got 3" in refusal[2]
        refusal = await front.fault(fake(keys[2], expiry_s), keys[2])
        assert refusal[:2] == (503, "ServiceUnavailable")
        assert "unlisted tokens" in refusal[2]
        if endless:
            await front.posted(fake(keys[2], later_s), keys[2])
        await front.posted(front.an_order())


# --- Drafts: anybody may post one in the name of a contract ----------------------------------------------


@pytest.mark.parametrize("runs", [True, False], ids=["run here", "run elsewhere"])
async def test_a_draft_is_signed_by_posting_it_again(tmp_path: Path, runs: bool) -> None:
    """The keys of a wallet sign one after the other, or a stranger was first with a signature of his own."""
    async with an_otc_front(tmp_path, runs=runs) as front:
        world = front.world
        wallet = await a_wallet(world, world.user)
        order = front.an_order(maker=wallet)
        draft = await front.posted(order, signature=GARBAGE)
        assert draft["state"] == "DRAFT"
        assert await front.posted(order, world.stranger) == draft, "that one is no better"
        signed = await front.posted(order, world.user)
        assert (signed["state"], signed["signature"]) == ("PENDING", to_hex(world.signed(order, world.user)))
        assert signed["createdAt"] == draft["createdAt"]
        assert (await front.order(draft))["signature"] == signed["signature"]
        again = await front.posted(order, signature=GARBAGE)
        assert (again["state"], again["signature"]) == ("PENDING", signed["signature"]), "it is signed"
        if runs:
            await front.until(draft, state="PENDING", swappableBalance=str(2_500 * USDC))
        live = front.engine.orders.get(parse_hex(draft["orderHash"], "orderHash"))
        assert live is not None
        assert to_hex(live.document.signature) == signed["signature"]


async def test_drafts_of_strangers_take_no_room_from_what_is_signed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "OTC_LIVE_ORDERS_PER_MAKER_MAX", 2)
    monkeypatch.setattr(limits, "OTC_LIVE_DRAFTS_PER_MAKER_MAX", 3)
    async with an_otc_front(tmp_path, runs=False) as front:
        world = front.world
        wallet = await a_wallet(world, world.user)
        drafts = [front.an_order(maker=wallet) for _ in range(3)]
        for draft in drafts:
            assert (await front.posted(draft, signature=GARBAGE))["state"] == "DRAFT"
        refusal = await front.fault(front.an_order(maker=wallet), signature=GARBAGE)
        assert refusal[:2] == (400, "TooManyOpenOrders")
        assert "maker: expected fewer than 3 orders that are not signed yet, got 3" in refusal[2]
        for _ in range(2):
            assert (await front.posted(front.an_order(maker=wallet), world.user))["state"] == "PENDING"
        refusal = await front.fault(front.an_order(maker=wallet), world.user)
        assert "maker: expected fewer than 2 orders that may still change, got 2" in refusal[2]
        assert (await front.posted(drafts[0], signature=GARBAGE))["state"] == "DRAFT", "it is kept already"


# --- Wrong signatures: a few of each caller are looked at -------------------------------------------------


async def test_wrong_signatures_and_drafts_are_looked_at_a_few_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    chains: list[CountedChain] = []

    def counted(chain: Any) -> CountedChain:
        chains.append(CountedChain(chain))
        return chains[0]

    burst = 16
    tier = RateTier(per_s=100_000, burst=100_000, wrong_signatures=Rate(per_s=1e-6, burst=burst))
    async with an_otc_front(tmp_path, runs=False, chain=counted, tier=tier) as front:
        world, (chain,) = front.world, chains
        recovered = counted_recoveries(monkeypatch)
        wallet = await a_wallet(world, world.user)
        for _ in range(2 * burst):
            assert (await front.posted(front.an_order()))["state"] == "PENDING"
            assert (await front.posted(front.an_order(maker=wallet), world.user))["state"] == "PENDING"
        draft = front.an_order(maker=wallet)
        assert (await front.posted(draft, signature=GARBAGE))["state"] == "DRAFT"
        await front.posted(draft, world.stranger)
        before, recoveries = Counter(chain.asked), len(recovered)
        for _ in range(burst - 2):
            assert (await front.fault(front.an_order(), world.stranger))[1] == "InvalidSignature"
        assert Counter(chain.asked) - before == Counter(block=burst - 2, code=burst - 2)
        assert len(recovered) == recoveries + burst - 2
        before = Counter(chain.asked)
        for order, key in ((front.an_order(), world.stranger), (draft, world.user), (front.an_order(), None)):
            status, told = await front.submit(order, key)
            assert (status, told["errorType"]) == (429, "RateLimited")
            assert told["details"].startswith("rate limit exceeded: too many wrong signatures")
        assert (Counter(chain.asked), len(recovered)) == (before, recoveries + burst - 2)


# --- Tokens of anybody's ---------------------------------------------------------------------------------


async def test_a_token_gets_no_more_gas_than_a_balance_needs(tmp_path: Path) -> None:
    """The poster names the contract that nodes run; a gas limit bounds its calls."""
    async with an_otc_front(tmp_path) as front:
        world = front.world
        token = await a_contract(world, GAS_LEFT)
        stored = await front.posted(front.an_order(maker_asset=token, maker_amount=100_000_000))
        assert 0 < int(stored["makerBalance"]) < limits.CHAIN_TOKEN_GAS_MAX
        fillable = await front.get(f"{FILLABLE}/{stored['maker']}/{to_hex(token)}")
        assert 0 < int(fillable[to_hex(token)]) < limits.CHAIN_TOKEN_GAS_MAX
        found = await holdings(world.chain, [HoldingQuestion(token, world.maker.address, world.at.rfq)])
        assert found.found[0] is not None, "this is what the watch of funds asks"
        assert 0 < found.found[0].usable < limits.CHAIN_TOKEN_GAS_MAX


async def test_a_token_without_allowances_is_none(tmp_path: Path) -> None:
    async with an_otc_front(tmp_path, runs=False) as front:
        token = await a_contract(front.world, NO_ALLOWANCE)
        refusal = await front.fault(front.an_order(maker_asset=token))
        what = f"a contract without allowances at {to_checksum(token)}"
        expected = f"Invalid input: makerAsset: expected an ERC-20 token, got '{what}'"
        assert refusal == (400, "InvalidInput", expected)


# --- How much a venue takes -------------------------------------------------------------------------------


async def test_what_costs_nothing_takes_no_room_from_what_funds_cover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "OTC_LIVE_UNFUNDED_MAX", 2)
    monkeypatch.setattr(limits, "OTC_LIVE_MAX", 4)
    async with an_otc_front(tmp_path, runs=False) as front:
        world = front.world
        wallet = await a_wallet(world, world.user)
        draft = await front.posted(front.an_order(maker=wallet), signature=GARBAGE)
        short = front.an_order(maker_amount=10**24)
        suspended = await front.posted(short)
        assert (draft["state"], suspended["state"]) == ("DRAFT", "SUSPENDED")
        for refused in (
            await front.fault(front.an_order(maker_amount=10**24)),
            await front.fault(front.an_order(maker=wallet), signature=GARBAGE),
        ):
            assert refused[:2] == (503, "ServiceUnavailable")
            assert "2 OTC orders wait for funds or a signature" in refused[2]
        assert (await front.posted(short))["state"] == "SUSPENDED", "it is kept already"
        for _ in range(2):
            assert (await front.posted(front.an_order()))["state"] == "PENDING"
        again = await front.posted(short)
        assert again["state"] == "SUSPENDED", "a repeated post takes no place"
        for gone in (draft, suspended):
            assert (await front.posted(front.an_order()))["state"] == "PENDING"
            assert (await front.order(gone))["state"] == "EXPIRED", "it gave its place"
        assert (await front.posted(short))["state"] == "EXPIRED"
        await world.give(world.stranger, world.usdc, 2_500 * USDC, world.at.rfq)
        refused = await front.fault(front.an_order(maker=world.stranger.address), world.stranger)
        assert refused[:2] == (503, "ServiceUnavailable"), "what funds cover gives way to nothing"
        assert "4 OTC orders may still change" in refused[2]


async def test_a_post_ends_one_other_order_however_many_there_are_beyond_the_bound(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Orders that lost their funds later were not counted when they came."""
    async with an_otc_front(tmp_path, runs=False) as front:
        kept = [await front.posted(front.an_order(maker_amount=10**24)) for _ in range(6)]
        monkeypatch.setattr(limits, "OTC_LIVE_UNFUNDED_MAX", 2)
        front.address, key = "198.51.100.1", SigningKey(b"8" * 32)
        await front.posted(front.an_order(maker=key.address), key)
        states = [(await front.order(one))["state"] for one in kept]
        assert states == ["EXPIRED", *["SUSPENDED"] * 5]


async def test_an_order_that_sells_next_to_nothing_is_as_one_without_funds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "OTC_LIVE_MAX", 2)
    async with an_otc_front(tmp_path, runs=False) as front:
        dust = [await front.posted(front.an_order(maker_amount=USDC // 2, taker_amount=1)) for _ in range(2)]
        assert [one["state"] for one in dust] == ["PENDING"] * 2
        for gone in dust:
            await front.posted(front.an_order())
            assert (await front.order(gone))["state"] == "EXPIRED"


async def test_what_came_with_a_key_gives_way_after_what_came_without(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "OTC_LIVE_UNFUNDED_MAX", 3)
    async with an_otc_front(tmp_path, runs=False) as front:

        async def posted(number: int, **headers: str) -> tuple[int, Any]:
            key = SigningKey(bytes([number]) * 32)
            body = front.body(front.an_order(maker=key.address), key)
            return await front.post(P2P, body, headers)

        keyed = {"X-API-KEY": OPERATOR_KEY}
        told = [await posted(1), await posted(2, **keyed), await posted(3, **keyed)]
        front.address = "198.51.100.1"
        assert (await posted(4))[0] == 503, "nobody without a key has two"
        told.append(await posted(5, **keyed))
        states = [(await front.order(one))["state"] for _, one in told]
        assert states == ["EXPIRED", *["SUSPENDED"] * 3]


async def test_a_network_takes_no_places_from_others_that_have_fewer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys are free: one network fills the places of what costs nothing by as many makers as it likes."""
    monkeypatch.setattr(limits, "OTC_LIVE_UNFUNDED_MAX", 6)
    async with an_otc_front(tmp_path, runs=False) as front:

        async def asks(address: str, number: int) -> tuple[dict[str, Any], int]:
            front.address, key = address, SigningKey(bytes([number]) * 32)
            order = front.an_order(maker=key.address)
            status, told = await front.submit(order, key)
            return told, status

        hostile = [(await asks(f"203.0.113.{number}", number))[0] for number in range(1, 7)]
        assert (await asks("203.0.113.77", 7))[1] == 503
        honest = []
        for number in (8, 9, 10):
            told, status = await asks("198.51.100.1", number)
            assert status == 200
            honest.append(told)
        for number in range(11, 20):
            assert (await asks("203.0.113.78", number))[1] == 503
        assert [(await front.order(told))["state"] for told in honest] == ["SUSPENDED"] * 3
        states = [(await front.order(told))["state"] for told in hostile]
        assert states == ["EXPIRED"] * 3 + ["SUSPENDED"] * 3


async def test_the_balances_of_a_few_tokens_of_an_account_are_told_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(otc, "OTC_LIVE_TOKENS_SHOWN_MAX", 2)
    async with an_otc_front(tmp_path) as front:
        tokens = [await a_contract(front.world, GAS_LEFT) for _ in range(3)]
        for token in tokens:
            await front.posted(front.an_order(maker_asset=token, maker_amount=100_000_000))
        maker = to_hex(front.world.maker.address)
        listed = len(await front.get(f"{FILLABLE}/{to_hex(b'9' * 20)}"))
        assert len(await front.get(f"{FILLABLE}/{maker}")) == listed + 2
        last = await front.get(f"{FILLABLE}/{maker}/{to_hex(tokens[-1])}")
        assert [*last] == [to_hex(tokens[-1])]
