"""GET /ft/order, the maker and taker listings, fillable balances; refusals of every /ft path; the limits."""

import itertools
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.codecs.messages.vocabulary import OtcState
from cambist.config.errors import NodeUnavailable
from cambist.config.limits import NATIVE_PLACEHOLDER
from cambist.config.sections.venue import RateTier
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.store.rows import amount32
from support.chain.world import NOBODY, ONE, USDC
from support.contracts.rfq_stories import a_wallet
from support.oracles import Oracle, openapi_oracle
from support.otc.otc_front import (
    CHAIN_ID,
    FILLABLE,
    MARKET_ONLY,
    OTHER_RFQ,
    P2P,
    OtcFront,
    an_otc_front,
    told,
)
from support.store.stores import moved

INVALID = 400, "InvalidInput"
HASH = "0x" + "5a" * 32
PAGE_KEYS = ["orders", "limit", "offset", "total", "hasMore", "asOf"]


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[OtcFront]:
    async with an_otc_front(tmp_path, runs=False) as front:
        yield front


def of_maker(front: OtcFront) -> str:
    return f"{P2P}/maker/{to_checksum(front.world.maker.address)}"


def of_taker(front: OtcFront) -> str:
    return f"{P2P}/taker/{to_checksum(front.world.taker.address)}"


async def posted(front: OtcFront, count: int, **changed: Any) -> list[str]:
    """Hashes of so many orders of 100 USDC, the latest first."""
    orders = [
        await front.posted(front.an_order(**{"maker_amount": 100 * USDC} | changed)) for _ in range(count)
    ]
    return [order["orderHash"] for order in reversed(orders)]


def hashes(page: dict[str, Any]) -> list[str]:
    return [order["orderHash"] for order in page["orders"]]


# --- One order ------------------------------------------------------------------------------------------


async def test_by_hash_in_any_case(front: OtcFront) -> None:
    stored = await front.posted(front.an_order())
    order_hash = stored["orderHash"]
    for text in (order_hash, order_hash.upper().replace("X", "x"), f"{order_hash}/"):
        assert await front.get(f"/ft/order/{text}") == stored


async def test_a_hash_that_no_order_has(front: OtcFront) -> None:
    refusal = told(await front.answer(f"/ft/order/{HASH}"))
    assert refusal == (404, "OrderNotFound", f"Order not found: orderHash: got '{HASH}'")


@pytest.mark.parametrize("text", ["0x1234", "5a" * 32, "0x" + "zz" * 32, "mine"])
async def test_what_is_no_hash(front: OtcFront, text: str) -> None:
    refusal = told(await front.answer(f"/ft/order/{text}"))
    assert refusal[:2] == INVALID
    assert "orderHash: expected 0x and 64 hexadecimal digits" in refusal[2]


@pytest.mark.parametrize("state", list(OtcState))
async def test_each_state_as_it_is_stored(front: OtcFront, state: OtcState) -> None:
    stored = await front.posted(front.an_order())
    row = await front.row(stored)
    if state is OtcState.DRAFT:
        wallet = await a_wallet(front.world, front.world.user)
        stored = await front.posted(front.an_order(maker=wallet), signature=b"")
    elif state is not OtcState.PENDING:
        tx_hash = b"\x7a" * 32 if state in (OtcState.FULFILLED, OtcState.CANCELLED) else None
        left = amount32(0) if state is OtcState.FULFILLED else row.remaining
        await moved(
            front.store, row, status=state, swappable=amount32(0), remaining=left, transaction_hash=tx_hash
        )
        found = await front.order(stored)
        assert found["transactionHash"] == (None if tx_hash is None else to_hex(tx_hash))
        assert found["fillableBalance"] == str(int.from_bytes(left, "big"))
    assert (await front.order(stored))["state"] == state


# --- Listings -------------------------------------------------------------------------------------------


async def test_a_listing_of_a_maker(front: OtcFront) -> None:
    expected = await posted(front, 3)
    page = await front.get(of_maker(front))
    assert list(page) == PAGE_KEYS
    assert hashes(page) == expected
    assert page["orders"][0] == await front.get(f"/ft/order/{expected[0]}")
    assert (page["limit"], page["offset"], page["total"], page["hasMore"]) == (100, 0, 3, False)
    assert await front.get(f"{of_maker(front)}/") == page
    nobody = await front.get(f"{P2P}/maker/{to_checksum(front.world.user.address)}")
    assert (nobody["orders"], nobody["total"], nobody["hasMore"]) == ([], 0, False)
    elsewhere = await front.get(of_maker(front).replace(str(CHAIN_ID), str(OTHER_RFQ)))
    assert elsewhere["total"] == 0


async def test_limit_and_offset(front: OtcFront) -> None:
    expected = await posted(front, 5)
    for limit, offset in itertools.product((1, 2, 5, 1_000), (0, 1, 4, 5, 7, 5_000)):
        page = await front.get(of_maker(front), limit=limit, offset=offset)
        assert hashes(page) == expected[offset : offset + limit]
        assert (page["limit"], page["offset"], page["total"]) == (limit, offset, 5)
        assert page["hasMore"] == (offset + limit < 5)


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ({"limit": 0}, "limit: expected an integer from 1 to 1000, got '0'"),
        ({"limit": 1_001}, "limit: expected an integer from 1 to 1000"),
        ({"limit": "ten"}, "limit: expected an integer"),
        ({"offset": -1}, "offset: expected an integer from 0"),
        ({"type": "p2p"}, "type: expected one of P2P, LIMIT"),
        ({"orderBy": "price"}, "orderBy: expected one of createdAt, updatedAt, expiry"),
        ({"hideSmallBalances": 1}, "hideSmallBalances: expected true or false"),
        ({"asOf": "yesterday"}, "asOf: expected that of an earlier page, got 'yesterday'"),
        ({"asOf": "yesterday", "offset": 2_000}, "asOf: expected that of an earlier page"),
        ({"asOf": "1" * 5_000}, "asOf: expected at most 4096 characters"),
    ],
)
async def test_parameters_out_of_range(front: OtcFront, query: dict[str, Any], said: str) -> None:
    for path in (of_maker(front), of_taker(front)):
        refusal = told(await front.answer(path, **query))
        assert refusal[:2] == INVALID
        assert refusal[2].startswith(f"Invalid input: {said}")


async def test_unknown_parameters_are_ignored_and_empty_ones_are_absent(front: OtcFront) -> None:
    await posted(front, 1)
    page = await front.get(of_maker(front), page=3, type="", orderBy="", asOf="", limit="")
    assert (page["total"], page["limit"]) == (1, 100)


async def test_type_follows_from_the_taker(front: OtcFront) -> None:
    private = await posted(front, 2)
    public = await posted(front, 1, taker=NOBODY)
    assert hashes(await front.get(of_maker(front), type="P2P")) == private
    assert hashes(await front.get(of_maker(front), type="LIMIT")) == public
    assert hashes(await front.get(of_maker(front))) == public + private


async def test_a_listing_of_a_taker_matches_taker_or_receiver(front: OtcFront) -> None:
    world = front.world
    (named,) = await posted(front, 1)
    in_meta = int.from_bytes(world.taker.address, "big")
    (meta,) = await posted(front, 1, taker=world.user.address, nonce_and_meta=in_meta)
    (both,) = await posted(front, 1, nonce_and_meta=1 << 160 | in_meta)
    (opened,) = await posted(front, 1, taker=NOBODY, nonce_and_meta=2 << 160 | in_meta)
    await posted(front, 1, taker=world.stranger.address)
    page = await front.get(of_taker(front))
    assert hashes(page) == [opened, both, meta, named]
    assert page["total"] == 4
    assert hashes(await front.get(of_taker(front), limit=2, offset=1)) == [both, meta]
    assert hashes(await front.get(of_taker(front), type="LIMIT")) == [opened]
    assert hashes(await front.get(f"{P2P}/taker/{to_checksum(NOBODY)}")) == [opened]


async def test_order_by(front: OtcFront) -> None:
    now_s = front.now_ms() // 1_000
    never = await front.posted(front.an_order(maker_amount=USDC))
    late = await front.posted(front.an_order(maker_amount=USDC, expiry=now_s + 7_200))
    soon = await front.posted(front.an_order(maker_amount=USDC, expiry=now_s + 60))
    await moved(front.store, await front.row(late), status=OtcState.SUSPENDED)
    for order_by, expected in (
        ("createdAt", [soon, late, never]),
        ("updatedAt", [late, soon, never]),
        ("expiry", [late, soon, never]),
    ):
        for path in (of_maker(front), of_taker(front)):
            page = await front.get(path, orderBy=order_by)
            assert hashes(page) == [order["orderHash"] for order in expected], order_by


async def test_small_balances_are_hidden(front: OtcFront) -> None:
    """USDC and DAI are worth a dollar, the price of WETH is not known."""
    world = front.world
    await world.give(world.maker, world.weth, ONE, world.at.rfq)
    await world.give(world.maker, world.dai, ONE, world.at.rfq)
    small = await front.posted(front.an_order(maker_amount=USDC - 1))
    dollar = await front.posted(front.an_order(maker_amount=USDC))
    stable = await front.posted(front.an_order(maker_asset=world.dai, maker_amount=ONE))
    unpriced = await front.posted(
        front.an_order(maker_asset=world.weth, taker_asset=world.usdc, maker_amount=1)
    )
    short = await front.posted(front.an_order(maker_amount=20_000 * USDC))
    rest = await front.posted(front.an_order(maker_amount=10_000 * USDC))
    none = await front.posted(front.an_order(maker_amount=USDC))
    assert none["swappableBalance"] == "0"
    for path in (of_maker(front), of_taker(front)):
        page = await front.get(path, hideSmallBalances="true")
        assert hashes(page) == [order["orderHash"] for order in (rest, unpriced, stable, dollar)]
        assert page["total"] == 4
        shown = await front.get(path, hideSmallBalances="FALSE")
        assert shown["total"] == 7
        assert {short["orderHash"], small["orderHash"]} <= set(hashes(shown))


async def test_what_is_small_is_a_setting(tmp_path: Path) -> None:
    async with an_otc_front(tmp_path, runs=False, small_usd=Decimal("0.5")) as front:
        half = await front.posted(front.an_order(maker_amount=USDC // 2))
        await front.posted(front.an_order(maker_amount=USDC // 2 - 1))
        page = await front.get(of_maker(front), hideSmallBalances="true")
        assert hashes(page) == [half["orderHash"]]


@pytest.mark.parametrize("order_by", ["createdAt", "expiry"])
async def test_pages_as_of_the_first_do_not_move_while_orders_come_in(front: OtcFront, order_by: str) -> None:
    await posted(front, 5)
    expected = hashes(await front.get(of_maker(front), orderBy=order_by))
    first = await front.get(of_maker(front), limit=2, orderBy=order_by)
    seen = hashes(first)
    for offset in (2, 4):
        await posted(front, 2)
        page = await front.get(of_maker(front), limit=2, offset=offset, asOf=first["asOf"], orderBy=order_by)
        assert (page["total"], page["asOf"]) == (5, first["asOf"])
        seen += hashes(page)
    assert seen == expected
    last = await front.get(of_maker(front), limit=2, offset=4, asOf=first["asOf"], orderBy=order_by)
    assert (hashes(last), last["hasMore"]) == (expected[4:], False)
    assert (await front.get(of_maker(front)))["total"] > 5, "who does not ask sees what is there now"
    far = await front.get(of_maker(front), offset=5_000, asOf=first["asOf"])
    assert (far["orders"], far["total"], far["asOf"]) == ([], 5, first["asOf"])


async def test_far_pages_are_read_from_the_nearer_end(
    front: OtcFront, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = await posted(front, 9)
    monkeypatch.setattr("cambist.engine.trade.otc.stored_orders._FAR", 0)
    for limit, offset in itertools.product((1, 3, 4, 100), range(11)):
        page = await front.get(of_maker(front), limit=limit, offset=offset)
        assert hashes(page) == expected[offset : offset + limit]
        assert page["total"] == 9


@pytest.mark.parametrize("role", ["maker", "taker"])
async def test_what_a_listing_is_of(front: OtcFront, role: str) -> None:
    account = to_checksum(front.world.maker.address)
    for path in (f"/ft/p2p/1/{role}/{account}", f"/ft/p2p/{MARKET_ONLY}/{role}/{account}"):
        assert told(await front.answer(path))[:2] == (422, "UnsupportedChain")
    for path in (f"/ft/p2p/x/{role}/{account}", f"{P2P}/{role}/0x12", f"{P2P}/{role}/alice"):
        assert told(await front.answer(path))[:2] == INVALID
    assert (await front.get(f"{P2P}/{role}/{account.lower()}"))["total"] == 0


# --- Fillable balances ----------------------------------------------------------------------------------


def balance_path(front: OtcFront) -> str:
    return f"{FILLABLE}/{to_checksum(front.world.maker.address)}"


async def test_fillable_balances_of_listed_tokens_and_of_those_of_orders(front: OtcFront) -> None:
    world = front.world
    usdc, weth, dai = (to_hex(token) for token in (world.usdc, world.weth, world.dai))
    assert await front.get(balance_path(front)) == {weth: "0", usdc: str(10_000 * USDC), dai: "0"}
    odd = await world.new_token()
    await world.give(world.maker, odd, 3 * ONE, world.at.rfq)
    await front.posted(front.an_order(maker_amount=4_000 * USDC))
    await front.posted(front.an_order(maker_asset=odd, maker_amount=ONE))
    assert await front.get(balance_path(front)) == {
        weth: "0", usdc: str(6_000 * USDC), dai: "0", to_hex(odd): str(2 * ONE),
    }  # fmt: skip
    await front.posted(front.an_order(maker_amount=20_000 * USDC))
    after = await front.get(balance_path(front))
    assert after[usdc] == str(6_000 * USDC), "a suspended order reserves nothing"
    await front.posted(front.an_order(maker_amount=10_000 * USDC))
    after = await front.get(balance_path(front))
    assert after[usdc] == "0", "more is promised than there is, and 0 is the least"


async def test_the_allowance_bounds_it_and_ended_orders_and_drafts_do_not(front: OtcFront) -> None:
    world = front.world
    await world.approve(world.maker, world.usdc, world.at.rfq, 1_000 * USDC)
    token = {"token": to_checksum(world.usdc)}
    stored = await front.posted(front.an_order(maker_amount=300 * USDC))
    assert await front.get(balance_path(front), **token) == {to_hex(world.usdc): str(700 * USDC)}
    await moved(front.store, await front.row(stored), status=OtcState.CANCELLED)
    assert await front.get(balance_path(front), **token) == {to_hex(world.usdc): str(1_000 * USDC)}
    wallet = await a_wallet(world, world.user)
    await front.posted(front.an_order(maker=wallet), signature=b"")
    draft = await front.get(f"{FILLABLE}/{to_hex(wallet)}", **token)
    assert draft == {to_hex(world.usdc): str(10_000 * USDC)}


async def test_a_token_in_the_path_or_as_a_parameter(front: OtcFront) -> None:
    usdc = front.world.usdc
    expected = {to_hex(usdc): str(10_000 * USDC)}
    path = balance_path(front)
    assert await front.get(f"{path}/{to_checksum(usdc)}") == expected
    assert await front.get(f"{path}/{to_checksum(usdc)}/") == expected
    assert await front.get(path, token=to_checksum(usdc)) == expected
    assert await front.get(f"{path}/{to_hex(usdc)}", token=to_checksum(usdc)) == expected
    refusal = told(await front.answer(f"{path}/{to_hex(usdc)}", token=to_hex(front.world.dai)))
    assert refusal[:2] == INVALID
    assert "token: expected that of the path" in refusal[2]


async def test_an_unknown_token_has_nothing(front: OtcFront) -> None:
    for token in (b"\x99" * 20, front.world.at.router, NOBODY, bytes.fromhex(NATIVE_PLACEHOLDER[2:])):
        balance = await front.get(f"{balance_path(front)}/{to_checksum(token)}")
        assert balance == {to_hex(token): "0"}


@pytest.mark.parametrize("path", ["/0x12", "/usdc", "?token=usdc"])
async def test_what_is_no_token(front: OtcFront, path: str) -> None:
    refusal = told(await front.answer(balance_path(front) + path))
    assert refusal[:2] == INVALID
    assert "token: expected an address" in refusal[2]


async def test_balances_of_what_is_no_account_or_on_no_chain(front: OtcFront) -> None:
    assert told(await front.answer(f"{FILLABLE}/alice"))[:2] == INVALID
    account = to_checksum(front.world.maker.address)
    refusal = told(await front.answer(f"/ft/fillablebalance/{MARKET_ONLY}/{account}"))
    assert refusal[:2] == (422, "UnsupportedChain")


class SilentChain:
    """Does not tell of blocks."""

    def __init__(self, chain: Any) -> None:
        self._chain = chain

    async def block(self, at: Any = None) -> Any:
        raise NodeUnavailable(f"no node tells of {at}")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chain, name)


async def test_balances_while_no_node_answers(tmp_path: Path) -> None:
    async with an_otc_front(tmp_path, runs=False, chain=SilentChain) as front:
        assert told(await front.answer(balance_path(front)))[:2] == (503, "ServiceUnavailable")
        assert (await front.get(of_maker(front)))["total"] == 0, "listings need no chain"


# --- Refusals have one shape ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "status", "error_type"),
    [
        ("GET", "/ft", 404, "NotFound"),
        ("GET", "/ft/", 404, "NotFound"),
        ("GET", "/ft/orders", 404, "NotFound"),
        ("POST", "/ft/p2p", 404, "NotFound"),
        ("GET", "/ft/p2p/1/holder/0x", 404, "NotFound"),
        ("GET", f"/ft/p2p/{CHAIN_ID}", 405, "MethodNotAllowed"),
        ("DELETE", f"/ft/order/{HASH}", 405, "MethodNotAllowed"),
        ("POST", f"/ft/fillablebalance/{CHAIN_ID}/0x", 405, "MethodNotAllowed"),
        ("GET", "/ft/order/%zz", 400, "InvalidInput"),
    ],
)
async def test_refusals_of_paths_and_methods(
    front: OtcFront, method: str, path: str, status: int, error_type: str
) -> None:
    response = await front.ask(method, path)
    assert told((response.status, msgspec.json.decode(response.body)))[:2] == (status, error_type)


async def test_other_paths_keep_their_own_shape(front: OtcFront) -> None:
    for path in ("/v2/nothing", "/ftx", "/f"):
        status, body = await front.answer(path)
        assert status == 404
        assert body.keys() == {"errorType", "details", "description", "error", "requestId"}


async def test_rate_limits_are_refused_in_the_same_shape(tmp_path: Path) -> None:
    async with an_otc_front(tmp_path, runs=False, tier=RateTier(per_s=0.001, burst=7)) as front:
        assert (await front.answer(f"/ft/order/{HASH}"))[0] == 404
        assert (await front.answer(balance_path(front)))[0] == 200, "which costs 5"
        assert (await front.answer(of_maker(front)))[0] == 200
        response = await front.ask("GET", of_maker(front))
        refusal = told((response.status, msgspec.json.decode(response.body)))
        assert refusal[:2] == (429, "RateLimited")
        assert refusal[2].startswith("rate limit exceeded")
        names = {name.decode().lower() for name, _ in response.headers}
        assert {"retry-after", "ratelimit-limit", "ratelimit-remaining", "ratelimit-reset"} <= names


@pytest.fixture(scope="module")
def openapi() -> Iterator[Oracle]:
    with openapi_oracle() as oracle:
        yield oracle


@pytest.mark.oracle
async def test_answers_are_as_openapi_describes_them(front: OtcFront, openapi: Oracle) -> None:
    order = front.an_order(maker_amount=100 * USDC)
    status, posted_order = await front.post(P2P, front.body(order, permitMakerAsset="0x"))
    found = await front.get(f"/ft/order/{posted_order['orderHash']}")
    page = await front.get(of_maker(front))
    balances = await front.get(balance_path(front))
    _, missing = await front.answer(f"/ft/order/{HASH}")
    _, refused = await front.post(P2P, {})
    assert status == 200
    for path, method, code, body in (
        ("/ft/p2p/{chainId}", "post", "200", posted_order),
        ("/ft/p2p/{chainId}", "post", "400", refused),
        ("/ft/order/{orderHash}", "get", "200", found),
        ("/ft/order/{orderHash}", "get", "404", missing),
        ("/ft/p2p/{chainId}/maker/{account}", "get", "200", page),
        ("/ft/p2p/{chainId}/taker/{account}", "get", "200", page),
        ("/ft/fillablebalance/{chainId}/{account}", "get", "200", balances),
        ("/ft/fillablebalance/{chainId}/{account}/{token}", "get", "200", balances),
    ):
        content = front.document["paths"][path][method]["responses"][code]["content"]
        schema = content["application/json"]["schema"]
        asked = {"ask": "instance", "document": front.document, "schema": schema}
        assert openapi.ask(**asked, instance=body) == {"errors": []}, path
        assert openapi.ask(**asked, instance=[])["errors"], path
