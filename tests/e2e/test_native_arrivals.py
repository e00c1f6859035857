"""Native tokens that arrive: Across unwraps for accounts without code, and quote, order and record say so.

Source: across-protocol/contracts, SpokePool.sol, `_unwrapwrappedNativeTokenTo`.
"""

from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from cambist.codecs.contracts.abi import address_word
from cambist.config import limits
from cambist.config.errors import ChainError
from cambist.config.limits import NATIVE_PLACEHOLDER
from cambist.crypto.addresses import to_checksum
from cambist.engine.chain.deploy.deploy import create
from support.bridge.bridged_stories import (
    ACROSS,
    BridgedStory,
    a_bridged_story,
    a_swapped_story,
    far_place,
)
from support.bridge.two_chains import TwoChains
from support.chain.delegating import delegate
from support.chain.world import ONE, USDC
from support.contracts.rfq_stories import a_wallet_that_sells

TO_ETH = {"destToken": NATIVE_PLACEHOLDER, "destDecimals": "18"}
SIDES = pytest.mark.parametrize("side", ["SELL", "BUY"])


def to_weth(story: BridgedStory) -> dict[str, str]:
    """Parameters of a quote for WETH on the second chain."""
    return {"destToken": to_checksum(story.far.weth), "destDecimals": "18"}


async def held(story: BridgedStory, account: bytes) -> tuple[int, int]:
    """Native and wrapped native tokens of an account on the second chain."""
    far = story.far
    return await far.chain.balance(account), await far.balance(far.weth, account)


async def a_contract_there(story: BridgedStory) -> bytes:
    """A contract of the user on the second chain."""
    far = story.far
    return await create(far.chain, far.owner, "DevWallet", address_word(story.world.user.address))


def asked_to_build(story: BridgedStory, route: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Body of a build that the venue's clock allows."""
    owner = to_checksum(story.world.user.address)
    deadline = story.clock.now_ms() // 1_000 + 3_600
    return {"route": route, "owner": owner, "slippage": 100, "deadline": deadline} | more


@SIDES
async def test_native_tokens_are_quoted_ordered_recorded_and_arrive(
    two: TwoChains, tmp_path: Path, side: str
) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        user = story.world.user.address
        before = await held(story, user)
        route = await story.quoted("across", side, ONE // 2, **TO_ETH)
        there = {"chainId": two.second, "address": NATIVE_PLACEHOLDER}
        assert route["destination"]["input"]["token"] == route["destination"]["output"]["token"] == there
        assert route["bridge"]["contractParams"]["outputToken"] == to_checksum(story.far.weth)
        placed = await story.ordered(route)
        assert placed["output"]["token"] == NATIVE_PLACEHOLDER
        record = await story.becomes(placed, "COMPLETED")
        native, wrapped = await held(story, user)
        (settled,) = record["transactions"]
        assert record["output"]["token"] == NATIVE_PLACEHOLDER
        assert native - before[0] == int(settled["receivedAmount"]) > 0
        assert wrapped == before[1]


@SIDES
async def test_who_wants_the_wrapped_token_gets_it(two: TwoChains, tmp_path: Path, side: str) -> None:
    """The venue wraps what arrives, and pays for it out of the price."""
    async with a_swapped_story(two, tmp_path) as (story, _):
        user = story.world.user.address
        before = await held(story, user)
        plain = await story.quoted("across", side, ONE // 2, **TO_ETH)
        route = await story.quoted("across", side, ONE // 2, **to_weth(story))
        arrives, gets = route["destination"]["input"], route["destination"]["output"]
        assert arrives["token"] == {"chainId": two.second, "address": NATIVE_PLACEHOLDER}
        assert gets["token"] == {"chainId": two.second, "address": to_checksum(story.far.weth)}
        assert arrives["amount"] == gets["amount"]
        assert int(route["fees"]["gas"]["amount"]) > int(plain["fees"]["gas"]["amount"])
        placed = await story.ordered(route)
        assert placed["output"]["token"] == to_checksum(story.far.weth)
        assert placed["beneficiary"] == placed["owner"]
        record = await story.becomes(placed, "COMPLETED")
        native, wrapped = await held(story, user)
        (settled,) = record["transactions"]
        assert record["output"]["token"] == to_checksum(story.far.weth)
        assert wrapped - before[1] == int(settled["receivedAmount"]) > 0
        assert native == before[0]
        assert wrapped - before[1] >= int(gets["amount"]) * (99 if side == "SELL" else 100) // 100


async def test_a_contract_gets_the_wrapped_token_and_is_told_so(two: TwoChains, tmp_path: Path) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        wallet = await a_contract_there(story)
        route = await story.quoted("across", "SELL", ONE // 2, **TO_ETH)
        asked = asked_to_build(story, route, beneficiary=to_checksum(wallet))
        status, refused = await story.web.post("/v2/delta/orders/build", asked)
        assert (status, refused["errorType"]) == (400, "InvalidInput")
        assert refused["details"] == (
            f"Invalid input: beneficiary: expected an account without code on chain {two.second}, for native "
            f"tokens, got '{to_checksum(wallet)}': a contract gets the wrapped token, "
            f"{to_checksum(story.far.weth)}: ask for a price of that token"
        )
        terms: dict[str, Any] = {"src_token": story.world.weth, "dest_token": story.world.weth}
        terms |= {"src_amount": ONE // 2, "dest_amount": ONE // 4, "expected_amount": 0}
        order = await story.an_order(ACROSS, **terms, bridge=story.way(ACROSS, "WETH"), beneficiary=wallet)
        placed = await story.submitted(order)
        record = await story.becomes(placed, "COMPLETED")
        assert placed["output"]["token"] == record["output"]["token"] == to_checksum(story.far.weth)
        native, wrapped = await held(story, wallet)
        assert (native, wrapped) == (0, int(record["output"]["executedAmount"]))


async def test_nothing_is_wrapped_for_a_contract_that_wants_the_wrapped_token(
    two: TwoChains, tmp_path: Path
) -> None:
    async with a_swapped_story(two, tmp_path) as (story, _):
        wallet, sent = await a_contract_there(story), await story.far.chain.nonce(story.world.relayer.address)
        native = await story.quoted("across", "SELL", ONE // 2, **TO_ETH)
        named = {"beneficiary": to_checksum(wallet)}
        status, refused = await story.web.post(
            "/v2/delta/orders/build", asked_to_build(story, native, **named)
        )
        assert (status, refused["errorType"]) == (400, "InvalidInput")
        assert refused["details"].endswith("ask for a price of that token")
        usdc = {"srcToken": to_checksum(story.world.usdc), "srcDecimals": "6"}
        sliced = await story.quoted("across", "SELL", 1_000 * USDC, **usdc, **to_weth(story))
        twap = {"orderType": "TWAPOrder", "interval": 60, "numSlices": 2, "totalSrcAmount": str(2_000 * USDC)}
        whole = await story.quoted("across", "SELL", ONE // 2, **to_weth(story))
        for route, more in ((sliced, twap), (whole, {})):
            status, built = await story.web.post(
                "/v2/delta/orders/build", asked_to_build(story, route, **named, **more)
            )
            assert status == 200, built
            value = built["toSign"]["value"]
            assert (value["beneficiary"], value["metadata"]) == (to_checksum(wallet), "0x")
        placed = await story.sent(built)
        record = await story.becomes(placed, "COMPLETED")
        assert placed["output"]["token"] == record["output"]["token"] == to_checksum(story.far.weth)
        assert await held(story, wallet) == (0, int(record["output"]["executedAmount"]))
        assert await story.far.chain.nonce(story.world.relayer.address) == sent, (
            "the venue has paid no gas there"
        )


async def test_the_record_of_a_delegated_account_names_what_arrived(
    two: TwoChains, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The spoke pool pays a delegated account as one without code, where it can read the delegation: not on
    the embedded chain, and not on each public one. An order for native tokens is refused for that reason.
    """
    async with a_bridged_story(two, tmp_path) as story:
        user = story.world.user
        await delegate(story.far, user, await a_contract_there(story))
        before = await held(story, user.address)
        route = await story.quoted("across", "SELL", ONE // 2, **TO_ETH)
        status, refused = await story.web.post("/v2/delta/orders/build", asked_to_build(story, route))
        assert (status, refused["errorType"]) == (400, "InvalidInput")
        assert "expected an account without code on chain" in refused["details"]
        wished = await story.quoted("across", "SELL", ONE // 2, **to_weth(story))
        _, built = await story.web.post("/v2/delta/orders/build", asked_to_build(story, wished))
        assert built["toSign"]["value"]["metadata"] != "0x", "what arrives is wrapped, if it has to be"
        with monkeypatch.context() as without:
            there: Any = story.web.app.chains
            without.setitem(there, two.second, replace(far_place(story), arrivals=b""))
            _, refused = await story.web.post("/v2/delta/orders/build", asked_to_build(story, route))
        assert refused["details"].endswith("the venue quotes no price of that token")
        terms: dict[str, Any] = {"src_token": story.world.weth, "dest_token": story.world.weth}
        terms |= {"src_amount": ONE // 2, "dest_amount": ONE // 4, "expected_amount": 0}
        order = await story.an_order(ACROSS, **terms, bridge=story.way(ACROSS, "WETH"))
        record = await story.becomes(await story.submitted(order), "COMPLETED")
        native, wrapped = await held(story, user.address)
        gained = {NATIVE_PLACEHOLDER: native - before[0], to_checksum(story.far.weth): wrapped - before[1]}
        assert gained.pop(record["output"]["token"]) == int(record["output"]["executedAmount"]) > 0
        assert set(gained.values()) == {0}


async def test_no_order_gives_way_to_one_whose_destination_does_not_answer(
    two: TwoChains, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The venue reads the destination before other orders end for good."""
    async with a_bridged_story(two, tmp_path) as story:
        wallet = await a_wallet_that_sells(story.world)
        monkeypatch.setattr(limits, "VENUE_UNBACKED_ORDERS_MAX", 1)
        waits = await story.submit(await story.an_order(ACROSS, owner=wallet), signature="0x")
        terms: dict[str, Any] = {"src_token": story.world.weth, "dest_token": story.world.weth}
        terms |= {"src_amount": ONE // 2, "dest_amount": ONE // 4, "expected_amount": 0}
        signed = await story.an_order(ACROSS, **terms, bridge=story.way(ACROSS, "WETH"))
        monkeypatch.setattr(limits, "VENUE_LIVE_BYTES_MAX", story.web.app.delta.orders.bytes + 65)

        async def silent(*_: object) -> bytes:
            raise ChainError("no node answers")

        with monkeypatch.context() as silenced:
            silenced.setattr(story.web.app.chains[two.second].chain, "code", silent)
            status, refused = await story.submit(signed)
        assert (status, waits[0]) == (503, 200), refused
        assert (await story.record(waits[1]["id"]))["status"] == "AWAITING_SIGNATURE"
        await story.submitted(signed)
        assert (await story.record(waits[1]["id"]))["status"] == "EXPIRED"


async def test_an_account_that_became_a_contract_meanwhile_has_the_record_corrected(
    two: TwoChains, tmp_path: Path
) -> None:
    """The record follows what the fill's transaction shows."""
    async with a_bridged_story(two, tmp_path) as story:
        two.relayer.order(is_silent=True)
        far = story.far
        # By CREATE2: the address is that of the second chain's contract, which is not there yet.
        key_word = address_word(story.world.user.address)
        wallet = await create(story.world.chain, story.world.owner, "DevWallet", key_word)
        terms: dict[str, Any] = {"src_token": story.world.weth, "dest_token": story.world.weth}
        terms |= {"src_amount": ONE // 2, "dest_amount": ONE // 4, "expected_amount": 0}
        order = await story.an_order(ACROSS, **terms, bridge=story.way(ACROSS, "WETH"), beneficiary=wallet)
        placed = await story.submitted(order)
        assert placed["output"]["token"] == NATIVE_PLACEHOLDER
        await story.becomes(placed, "BRIDGING")
        assert await a_contract_there(story) == wallet
        two.relayer.order(is_silent=False)
        record = await story.becomes(placed, "COMPLETED")
        assert record["output"]["token"] == to_checksum(far.weth)
        assert await held(story, wallet) == (0, int(record["output"]["executedAmount"]))


async def test_slices_of_a_twap_are_not_wrapped(two: TwoChains, tmp_path: Path) -> None:
    async with a_swapped_story(two, tmp_path) as (story, _):
        wished = await story.quoted("across", "SELL", ONE // 2, **to_weth(story))
        twap = {"orderType": "TWAPOrder", "interval": 60, "numSlices": 2, "totalSrcAmount": str(ONE)}
        status, refused = await story.web.post(
            "/v2/delta/orders/build", asked_to_build(story, wished, **twap)
        )
        assert (status, refused["errorType"]) == (400, "InvalidInput")
        assert "orderType: expected Order" in refused["details"]
        status, built = await story.web.post("/v2/delta/orders/build", asked_to_build(story, wished))
        assert status == 200, built
        value = built["toSign"]["value"]
        assert value["beneficiary"] != value["owner"]
        assert value["destToken"] == to_checksum(story.world.weth)


async def test_without_the_contract_that_wraps_the_wrapped_token_is_refused(
    two: TwoChains, tmp_path: Path
) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        query = {"chainId": two.first, "destChainId": two.second, "mode": "DELTA", "side": "SELL"}
        ends = {"srcToken": to_checksum(story.world.weth), "srcDecimals": 18} | to_weth(story)
        more = {"amount": str(ONE), "allowBridgeAndSwap": "false"}
        status, told = await story.web.answer("/v2/quote", **query | ends | more)
        assert (status, told["errorType"]) == (400, "NoRoute")
        assert "what enters as WETH arrives as ETH" in told["details"]
