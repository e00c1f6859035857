"""POST /ft/p2p/{chainId}: accepted orders, stored members, and refusals in the order of the checks."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from cambist.codecs.contracts import calldata
from cambist.codecs.eip712_orders.nonce_and_meta import pack_firm, pack_otc
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder, rfq_domain_separator
from cambist.config import limits
from cambist.config.errors import NodeUnavailable
from cambist.config.limits import NATIVE_PLACEHOLDER, UINT256_MAX, UNIX_SECONDS_MAX
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.secp256k1 import CURVE_ORDER
from cambist.crypto.signatures import to_65, to_compact64
from support.chain.remembering import Remembering
from support.chain.world import HOUR_S, NOBODY, ONE, RFQ_NAME, USDC
from support.contracts.permits import dai_permit, eip2612_permit, shown, token_domain
from support.contracts.rfq_stories import a_wallet
from support.otc.otc_front import (
    CHAIN_ID,
    MARKET_ONLY,
    OTHER_CONTRACT,
    OTHER_RFQ,
    P2P,
    OtcFront,
    an_otc_front,
    told,
)
from support.patience import PATIENCE_S

INVALID = 400, "InvalidInput"
ZERO = "0x" + "00" * 20
ORDER_KEYS = {
    "nonceAndMeta", "expiry", "makerAsset", "takerAsset", "makerAmount", "takerAmount", "maker", "taker",
    "signature", "permitMakerAsset",
}  # fmt: skip
STORED_KEYS = ORDER_KEYS | {
    "orderHash", "chainId", "state", "type", "takerFromMeta", "makerBalance", "fillableBalance",
    "reservedBalance", "swappableBalance", "transactionHash", "createdAt", "updatedAt",
}  # fmt: skip


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[OtcFront]:
    async with an_otc_front(tmp_path, runs=False) as front:
        yield front


# --- What is taken --------------------------------------------------------------------------------------


async def test_every_field_of_a_stored_order(front: OtcFront) -> None:
    order = front.an_order()
    before_s = front.now_ms() // 1_000
    stored = await front.posted(order)
    world = front.world
    assert stored.keys() == STORED_KEYS
    assert before_s <= stored.pop("createdAt") == stored.pop("updatedAt") <= front.now_ms() // 1_000
    assert stored == {
        "nonceAndMeta": str(order.nonce_and_meta),
        "expiry": 0,
        "makerAsset": to_checksum(world.usdc),
        "takerAsset": to_checksum(world.weth),
        "makerAmount": str(2_500 * USDC),
        "takerAmount": str(ONE),
        "maker": to_checksum(world.maker.address),
        "taker": to_checksum(world.taker.address),
        "signature": to_hex(world.signed(order)),
        "permitMakerAsset": None,
        "orderHash": front.hash_of(order),
        "chainId": CHAIN_ID,
        "state": "PENDING",
        "type": "P2P",
        "takerFromMeta": to_checksum(world.taker.address),
        "makerBalance": str(2_500 * USDC),
        "fillableBalance": str(2_500 * USDC),
        "reservedBalance": str(2_500 * USDC),
        "swappableBalance": str(2_500 * USDC),
        "transactionHash": None,
    }
    found = await front.get(f"/ft/order/{stored['orderHash']}")
    assert found.items() >= stored.items()


async def test_with_and_without_a_slash_at_the_end(front: OtcFront) -> None:
    for path in (P2P, f"{P2P}/"):
        order = front.an_order()
        assert (await front.post(path, front.body(order)))[0] == 200
        assert (await front.answer(f"/ft/order/{front.hash_of(order)}/"))[0] == 200


@pytest.mark.parametrize(
    ("layout", "expected"),
    [("OTC", "taker"), ("firm", "user"), ("zero", NOBODY), ("most", b"\xff" * 20)],
)
async def test_any_nonce_and_meta_is_taken_and_read(front: OtcFront, layout: str, expected: Any) -> None:
    world = front.world
    meta = {
        "OTC": pack_otc(world.maker.address, 7),
        "firm": pack_firm(world.user.address, 7),
        "zero": 0,
        "most": UINT256_MAX,
    }[layout]
    receiver = expected if isinstance(expected, bytes) else getattr(world, expected).address
    stored = await front.posted(front.an_order(nonce_and_meta=meta))
    assert stored["nonceAndMeta"] == str(meta)
    assert stored["takerFromMeta"] == to_checksum(receiver)
    assert stored["type"] == "P2P"


async def test_the_zero_address_as_taker_makes_an_open_order(front: OtcFront) -> None:
    stored = await front.posted(front.an_order(taker=NOBODY))
    assert (stored["type"], stored["taker"]) == ("LIMIT", ZERO)
    assert stored["takerFromMeta"] == ZERO, "the layout of spec 2.3.2 has no receiver but the taker"


async def test_an_expiry_to_come_and_none(front: OtcFront) -> None:
    soon = front.now_ms() // 1_000 + 60
    for expiry in (0, soon, UNIX_SECONDS_MAX):
        assert (await front.posted(front.an_order(expiry=expiry)))["expiry"] == expiry


async def test_the_same_order_again_is_answered_with_what_is_kept(front: OtcFront) -> None:
    order = front.an_order(expiry=front.now_ms() // 1_000 + 60)
    stored = await front.posted(order)
    assert await front.posted(order) == stored
    assert await front.posted(order, signature=b"") == stored, "whatever else is in the body"
    front.later_s = 3_600
    assert await front.posted(order) == stored, "whatever has become of it"
    assert (await front.get(f"{P2P}/maker/{stored['maker']}"))["total"] == 1


class _Meeting:
    """A chain whose reads of a posted order begin once two posts have come so far."""

    def __init__(self, chain: Any) -> None:
        self._chain = chain
        self._posts = 0
        self._both = trio.Event()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chain, name)

    async def call_many(self, *call: Any) -> Any:
        self._posts += 1
        if self._posts == 2:
            self._both.set()
        with trio.fail_after(PATIENCE_S):
            await self._both.wait()
        return await self._chain.call_many(*call)


async def test_two_posts_of_an_order_at_once_are_answered_alike(tmp_path: Path) -> None:
    """Both are checked before either is stored."""
    answers: list[dict[str, Any]] = []
    async with an_otc_front(tmp_path, runs=False, chain=_Meeting) as front:
        order = front.an_order()

        async def post() -> None:
            answers.append(await front.posted(order))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(post)
            nursery.start_soon(post)
        assert answers[0] == answers[1]
        assert (await front.get(f"{P2P}/maker/{answers[0]['maker']}"))["total"] == 1


async def test_other_members_are_ignored_and_addresses_come_in_any_case(front: OtcFront) -> None:
    order = front.an_order()
    body = front.body(order, chainId=1, note="of another client's")
    for name in ("maker", "taker", "makerAsset", "takerAsset"):
        body[name] = "0x" + body[name][2:].upper()
    status, stored = await front.post(P2P, body)
    assert status == 200
    assert stored["orderHash"] == front.hash_of(order)
    assert stored["maker"] == to_checksum(order.maker)


# --- Funds ----------------------------------------------------------------------------------------------


async def test_an_order_above_the_balance_is_kept_suspended(front: OtcFront) -> None:
    stored = await front.posted(front.an_order(maker_amount=10_001 * USDC))
    assert stored["state"] == "SUSPENDED"
    assert stored["fillableBalance"] == str(10_001 * USDC)
    assert stored["makerBalance"] == str(10_000 * USDC)
    assert stored["reservedBalance"] == stored["swappableBalance"] == "0"


async def test_an_order_above_the_allowance_is_kept_suspended(front: OtcFront) -> None:
    world = front.world
    await world.approve(world.maker, world.usdc, world.at.rfq, 2_499 * USDC)
    stored = await front.posted(front.an_order())
    assert (stored["state"], stored["makerBalance"]) == ("SUSPENDED", str(2_499 * USDC))
    exact = await front.posted(front.an_order(maker_amount=2_499 * USDC))
    assert exact["state"] == "PENDING", "its own remaining amount is covered"
    assert exact["reservedBalance"] == exact["swappableBalance"] == str(2_499 * USDC), (
        "the older one has none"
    )


async def test_an_order_above_the_funds_hides_no_later_one(front: OtcFront) -> None:
    world = front.world
    giant = await front.posted(front.an_order(maker_amount=UINT256_MAX))
    later = await front.posted(front.an_order())
    assert (giant["state"], later["state"]) == ("SUSPENDED", "PENDING")
    assert later["reservedBalance"] == later["swappableBalance"] == str(2_500 * USDC)
    listed = await front.get(f"{P2P}/maker/{later['maker']}", hideSmallBalances="true")
    assert [one["orderHash"] for one in listed["orders"]] == [later["orderHash"]]
    token = to_hex(world.usdc)
    told_of = await front.get(f"/ft/fillablebalance/{CHAIN_ID}/{later['maker']}/{token}")
    assert told_of == {token: str(7_500 * USDC)}


async def test_funds_are_shared_oldest_first(front: OtcFront) -> None:
    shares = []
    for amount in (6_000, 3_000, 2_000, 500):
        stored = await front.posted(front.an_order(maker_amount=amount * USDC))
        assert stored["state"] == "PENDING"
        assert stored["makerBalance"] == str(amount * USDC)
        assert stored["swappableBalance"] == stored["reservedBalance"]
        shares.append(int(stored["reservedBalance"]) // USDC)
    assert shares == [6_000, 3_000, 1_000, 0]


# --- Permits --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("permit", [None, "0x"])
async def test_no_permit_is_echoed_as_it_came(front: OtcFront, permit: str | None) -> None:
    assert (await front.posted(front.an_order(), permitMakerAsset=permit))["permitMakerAsset"] == permit


@pytest.mark.parametrize("kind", ["EIP-2612", "DAI"])
async def test_a_permit_replaces_the_approval(front: OtcFront, kind: str) -> None:
    world = front.world
    await world.approve(world.maker, world.usdc, world.at.rfq, 0)
    permit = await a_permit(front, kind)
    stored = await front.posted(front.an_order(), permitMakerAsset=to_hex(permit))
    assert (stored["state"], stored["permitMakerAsset"]) == ("PENDING", to_hex(permit))
    assert stored["swappableBalance"] == str(2_500 * USDC)
    bare = await front.posted(front.an_order())
    assert (bare["state"], bare["makerBalance"]) == ("SUSPENDED", "0"), "it is of its own order alone"


async def test_a_permit_that_the_token_refuses_gives_nothing_and_is_no_error(front: OtcFront) -> None:
    world = front.world
    await world.approve(world.maker, world.usdc, world.at.rfq, 0)
    used = await a_permit(front, "EIP-2612", value=ONE)
    await world.send(world.stranger, world.usdc, shown(used))
    assert (await front.posted(front.an_order(), permitMakerAsset=to_hex(used)))["state"] == "PENDING"
    await world.approve(world.maker, world.usdc, world.at.rfq, 0)
    for permit in (used, await a_permit(front, "EIP-2612", nonce=9), await a_permit(front, "DAI", nonce=9)):
        stored = await front.posted(front.an_order(), permitMakerAsset=to_hex(permit))
        assert (stored["state"], stored["makerBalance"]) == ("SUSPENDED", "0")
    small = await a_permit(front, "EIP-2612", nonce=1, value=2_499 * USDC)
    stored = await front.posted(front.an_order(), permitMakerAsset=to_hex(small))
    assert (stored["state"], stored["makerBalance"]) == ("SUSPENDED", str(2_499 * USDC))


@pytest.mark.parametrize("length", [1, 96, 192, 223, 225, 255, 257])
async def test_permits_of_other_lengths(front: OtcFront, length: int) -> None:
    refusal = await front.fault(front.an_order(), permitMakerAsset="0x" + "00" * length)
    expected = f"null, 0x, or 224 or 256 bytes, got '{length} bytes'"
    assert refusal == (*INVALID, f"Invalid input: permitMakerAsset: expected {expected}")


@pytest.mark.parametrize("kind", ["EIP-2612", "DAI"])
async def test_a_permit_names_the_maker_and_the_rfq_contract(front: OtcFront, kind: str) -> None:
    permit = await a_permit(front, kind)
    world = front.world
    for at, role, right in ((0, "maker", world.maker.address), (1, "spender", world.at.rfq)):
        wrong = permit[: 32 * at] + world.stranger.address.rjust(32, b"\0") + permit[32 * (at + 1) :]
        refusal = await front.fault(front.an_order(), permitMakerAsset=to_hex(wrong))
        said = f"permitMakerAsset: expected the {role} {to_checksum(right)}, got"
        assert refusal[:2] == INVALID
        assert said in refusal[2]


async def a_permit(front: OtcFront, kind: str, *, nonce: int = 0, value: int = 2_500 * USDC) -> bytes:
    world = front.world
    domain = token_domain("USDC", CHAIN_ID, world.usdc)
    until = await world.now_s() + HOUR_S
    if kind == "DAI":
        return dai_permit(domain, world.maker, world.at.rfq, nonce=nonce, expiry=until)
    return eip2612_permit(domain, world.maker, world.at.rfq, value, nonce=nonce, deadline=until)


# --- Signatures -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["65 bytes", "64 bytes", "65 bytes, v of 0 or 1"])
async def test_a_key_signs_in_each_form(front: OtcFront, form: str) -> None:
    order = front.an_order()
    rs64, recovery_id = front.world.maker.sign(front.world.rfq_hash(order))
    sent = {
        "65 bytes": to_65(rs64, recovery_id),
        "64 bytes": to_compact64(rs64, recovery_id),
        "65 bytes, v of 0 or 1": rs64 + bytes([recovery_id]),
    }[form]
    stored = await front.posted(order, signature=sent)
    kept = to_65(rs64, recovery_id) if "v of" in form else sent
    assert stored["signature"] == to_hex(kept)
    fill = calldata.fill_order(order, kept)
    assert (await front.world.send(front.world.taker, front.world.at.rfq, fill)).succeeded


async def test_signatures_that_are_nobodys_or_not_the_makers(front: OtcFront) -> None:
    order = front.an_order()
    world = front.world
    rs64, recovery_id = world.maker.sign(world.rfq_hash(order))
    high_s = CURVE_ORDER - int.from_bytes(rs64[32:], "big")
    for signature, reason in (
        (world.signed(order, world.stranger), f"{to_checksum(world.stranger.address)} signed this"),
        (rs64[:32] + high_s.to_bytes(32, "big") + bytes([28 - recovery_id]), "s is in the upper half"),
        (rs64 + b"\x02", "v: expected 27, 28, 0 or 1"),
        (bytes(65), "r is zero"),
        (b"", "it is empty"),
        (bytes(63), "64 or 65 bytes, this one has 63"),
    ):
        status, error_type, details = await front.fault(order, signature=signature)
        assert (status, error_type) == (400, "InvalidSignature"), details
        assert details.startswith("Invalid signature: ")
        assert reason in details


async def test_a_signature_for_another_chain_is_named(front: OtcFront) -> None:
    order = front.an_order()
    separator = rfq_domain_separator(RFQ_NAME, OTHER_RFQ, OTHER_CONTRACT)
    signature = to_65(*front.world.maker.sign(RFQ_ORDER.compiled.digest_for(separator)(order)))
    refusal = await front.fault(order, signature=signature)
    here = f"AUGUSTUS RFQ version 1, chain {CHAIN_ID}, contract {to_checksum(front.world.at.rfq)}"
    there = f"AUGUSTUS RFQ version 1, chain {OTHER_RFQ}, contract {to_checksum(OTHER_CONTRACT)}"
    said = f"signature: the owner signed for the domain {there}; expected {here}"
    assert refusal == (400, "InvalidSignature", f"Invalid signature: {said}")


async def test_a_signature_for_another_name_is_named(front: OtcFront) -> None:
    order = front.an_order()
    separator = rfq_domain_separator("Cambist RFQ", CHAIN_ID, front.world.at.rfq)
    digest32 = RFQ_ORDER.compiled.digest_for(separator)(order)
    *kind, said = await front.fault(order, signature=to_65(*front.world.maker.sign(digest32)))
    assert kind == [400, "InvalidSignature"]
    assert f"signed for the domain Cambist RFQ version 1, chain {CHAIN_ID}, contract" in said
    *kind, said = await front.fault(order, signature=to_65(*front.world.stranger.sign(digest32)))
    assert kind == [400, "InvalidSignature"]
    assert "signed this, not the owner" in said


async def test_a_contract_signs_by_eip_1271(front: OtcFront) -> None:
    world = front.world
    wallet = await a_wallet(world, world.user)
    order = front.an_order(maker=wallet, nonce_and_meta=1)
    stored = await front.posted(order, world.user)
    assert (stored["state"], stored["maker"]) == ("PENDING", to_checksum(wallet))
    assert stored["signature"] == to_hex(world.signed(order, world.user))


@pytest.mark.parametrize("signature", [None, b"", b"\x01" * 100], ids=["another key's", "empty", "anything"])
async def test_a_contract_that_does_not_accept_yet_has_a_draft(
    front: OtcFront, signature: bytes | None
) -> None:
    world = front.world
    wallet = await a_wallet(world, world.user)
    order = front.an_order(maker=wallet)
    signed = world.signed(order, world.stranger) if signature is None else signature
    stored = await front.posted(order, signature=signed)
    assert (stored["state"], stored["signature"]) == ("DRAFT", to_hex(signed))
    assert (stored["makerBalance"], stored["reservedBalance"], stored["swappableBalance"]) == (
        str(2_500 * USDC), "0", "0",
    )  # fmt: skip


# --- Members --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("member", sorted(ORDER_KEYS - {"permitMakerAsset"}))
async def test_members_that_are_required(front: OtcFront, member: str) -> None:
    body = front.body(front.an_order())
    del body[member]
    assert told(await front.post(P2P, body)) == (*INVALID, f"Invalid input: {member}: missing")


@pytest.mark.parametrize(
    ("member", "value", "said"),
    [
        ("nonceAndMeta", 7, "nonceAndMeta: expected a string"),
        ("nonceAndMeta", "0x7", "nonceAndMeta: expected a string of 1 to 78 digits"),
        ("nonceAndMeta", str(UINT256_MAX + 1), "nonceAndMeta: expected"),
        ("nonceAndMeta", "-1", "nonceAndMeta: expected"),
        ("expiry", "0x0", "expiry: expected an integer"),
        ("expiry", -1, "expiry: expected an integer"),
        ("expiry", 1.5, "expiry: expected an integer"),
        ("expiry", 2**53, "expiry: expected an integer"),
        ("makerAsset", "0x12", "makerAsset: expected an address"),
        ("takerAsset", "WETH", "takerAsset: expected an address"),
        ("makerAmount", "1.5", "makerAmount: expected a string of 1 to 78 digits"),
        ("makerAmount", 5, "makerAmount: expected a string"),
        ("takerAmount", str(UINT256_MAX + 1), "takerAmount: expected"),
        ("maker", "", "maker: expected an address"),
        ("taker", None, "taker: expected a string"),
        ("permitMakerAsset", "0x0", "permitMakerAsset: expected 0x and an even number"),
        ("permitMakerAsset", 7, "permitMakerAsset: expected"),
    ],
)
async def test_members_have_their_form(front: OtcFront, member: str, value: Any, said: str) -> None:
    refusal = told(await front.post(P2P, front.body(front.an_order()) | {member: value}))
    assert refusal[:2] == INVALID
    assert refusal[2].startswith(f"Invalid input: {said}"), refusal


@pytest.mark.parametrize("signature", ["", "0x0", "signed"])
async def test_a_signature_is_hexadecimal(front: OtcFront, signature: str) -> None:
    refusal = told(await front.post(P2P, front.body(front.an_order()) | {"signature": signature}))
    assert refusal[:2] == (400, "InvalidSignature")
    assert refusal[2].startswith("Invalid signature: signature: expected 0x and an even number")


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b"null", b'"0x"'])
async def test_a_body_is_an_object(front: OtcFront, body: bytes) -> None:
    response = await front.ask("POST", P2P, body)
    refusal = told((response.status, msgspec.json.decode(response.body)))
    assert refusal[:2] == INVALID


@pytest.mark.parametrize("name", ["makerAsset", "takerAsset"])
@pytest.mark.parametrize("native", [NATIVE_PLACEHOLDER, NATIVE_PLACEHOLDER.lower(), ZERO])
async def test_the_native_asset_is_wrapped_first(front: OtcFront, name: str, native: str) -> None:
    refusal = told(await front.post(P2P, front.body(front.an_order()) | {name: native}))
    assert refusal[:2] == INVALID
    assert refusal[2].startswith(f"Invalid input: {name}: expected an ERC-20 token, got '0x")
    assert refusal[2].endswith(": native asset must be wrapped first")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"maker_amount": 0}, "makerAmount: expected an amount above 0"),
        ({"taker_amount": 0}, "takerAmount: expected an amount above 0"),
        ({"maker": NOBODY}, "maker: expected an account"),
        (
            {"maker": bytes.fromhex(NATIVE_PLACEHOLDER[2:])},
            "maker: expected an account, neither zero nor the native placeholder",
        ),
        (
            {"expiry": 1_900_000_000_000},
            "expiry: expected 0 for never, or Unix seconds, at most 253402300799, got 1900000000000: this",
        ),
    ],
)
async def test_values_that_are_refused(front: OtcFront, changed: dict[str, Any], said: str) -> None:
    refusal = await front.fault(front.an_order(**changed))
    assert refusal[:2] == INVALID
    assert refusal[2].startswith(f"Invalid input: {said}")


async def test_two_assets_that_are_one(front: OtcFront) -> None:
    refusal = await front.fault(front.an_order(taker_asset=front.world.usdc))
    assert refusal[:2] == INVALID
    assert "takerAsset: expected another token than makerAsset" in refusal[2]


async def test_amounts_as_large_as_can_be_signed(front: OtcFront) -> None:
    stored = await front.posted(front.an_order(maker_amount=UINT256_MAX, taker_amount=UINT256_MAX))
    assert (stored["state"], stored["fillableBalance"]) == ("SUSPENDED", str(UINT256_MAX))


async def test_an_expiry_that_has_passed(front: OtcFront) -> None:
    for expiry in (1, front.now_ms() // 1_000):
        status, error_type, details = await front.fault(front.an_order(expiry=expiry))
        assert (status, error_type) == (400, "OrderExpired")
        assert details.startswith("Order expired: expiry: expected 0 for never, or a time after ")


async def test_what_is_at_fault_first_is_said(front: OtcFront) -> None:
    """All at once; then one after the other is put right."""
    world = front.world
    wrong: dict[str, Any] = {
        "takerAsset": NATIVE_PLACEHOLDER, "makerAmount": "0", "expiry": 1, "permitMakerAsset": "0x00",
        "signature": "0x", "nonceAndMeta": "x",
    }  # fmt: skip
    order = front.an_order()
    right = front.body(order)
    for member, said in (
        ("nonceAndMeta", "Invalid input: nonceAndMeta"),
        ("takerAsset", "Invalid input: takerAsset"),
        ("makerAmount", "Invalid input: makerAmount"),
        ("expiry", "Order expired"),
        ("permitMakerAsset", "Invalid input: permitMakerAsset"),
        ("signature", "Invalid signature"),
    ):
        assert told(await front.post(P2P, right | wrong))[2].startswith(said)
        wrong.pop(member)
    assert (await front.post(P2P, right))[0] == 200
    assert told(await front.post(f"/ft/p2p/{MARKET_ONLY}", {}))[:2] == (422, "UnsupportedChain")
    assert world.maker.address == order.maker


# --- The chain ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("chain_id", [1, MARKET_ONLY, 0])
async def test_chains_without_rfq(front: OtcFront, chain_id: int) -> None:
    order = front.an_order()
    status, error_type, details = told(await front.post(f"/ft/p2p/{chain_id}", front.body(order)))
    assert (status, error_type) == (422, "UnsupportedChain")
    assert details.startswith("Unsupported chain: chainId: expected a chain")


@pytest.mark.parametrize("text", ["one", "-1", "1.0", "1" * 17])
async def test_what_is_no_chain_id(front: OtcFront, text: str) -> None:
    refusal = told(await front.post(f"/ft/p2p/{text}", front.body(front.an_order())))
    assert refusal[:2] == INVALID
    assert "chainId: expected a chain id" in refusal[2]


@pytest.mark.parametrize("name", ["maker_asset", "taker_asset"])
@pytest.mark.parametrize("kind", ["account", "precompile", "contract"])
async def test_assets_that_are_no_tokens(front: OtcFront, name: str, kind: str) -> None:
    world = front.world
    asset = {"account": world.user.address, "precompile": bytes(19) + b"\4", "contract": world.at.router}[
        kind
    ]
    changed: dict[str, Any] = {name: asset}
    refusal = await front.fault(front.an_order(**changed))
    field = "makerAsset" if name == "maker_asset" else "takerAsset"
    what = "a contract that tells no balance" if kind == "contract" else "no contract"
    expected = f"{field}: expected an ERC-20 token, got '{what} at {to_checksum(asset)}'"
    assert refusal == (*INVALID, f"Invalid input: {expected}")


async def test_a_token_need_not_be_listed(front: OtcFront) -> None:
    world = front.world
    odd = await world.new_token()
    await world.give(world.maker, odd, ONE, world.at.rfq)
    stored = await front.posted(front.an_order(maker_asset=odd, maker_amount=ONE))
    assert (stored["state"], stored["makerAsset"]) == ("PENDING", to_checksum(odd))


async def test_an_order_that_the_chain_has_closed(front: OtcFront) -> None:
    filled, cancelled, others = front.an_order(), front.an_order(), front.an_order()
    world = front.world
    await front.fill(filled)
    for key, order in ((world.maker, cancelled), (world.stranger, others)):
        await world.send(key, world.at.rfq, calldata.cancel_order(world.rfq_hash(order)))
    for order in (filled, cancelled):
        refusal = await front.fault(order)
        said = f"Order closed on the chain: orderHash: got '{front.hash_of(order)}'"
        assert refusal == (400, "OrderClosed", said)
    assert (await front.posted(others))["state"] == "PENDING", "a stranger cancels nothing"


async def test_how_many_orders_of_a_maker_may_be_live(
    front: OtcFront, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "OTC_LIVE_ORDERS_PER_MAKER_MAX", 2)
    last = front.an_order()
    await front.posted(last)
    await front.posted(front.an_order())
    status, error_type, details = await front.fault(front.an_order())
    assert (status, error_type) == (400, "TooManyOpenOrders")
    assert "maker: expected fewer than 2 orders that may still change, got 2" in details
    await front.posted(last)


class AwayChain:
    """Does not answer once it is told so."""

    def __init__(self, chain: Any) -> None:
        self._chain = chain

    async def block(self, at: Any = None) -> Any:
        raise NodeUnavailable(f"no node tells of {at}")

    async def recent_block(self, age_s: float) -> Any:
        raise NodeUnavailable(f"no node tells of a block of the last {age_s} s")

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chain, name)


async def test_nothing_is_kept_where_the_chain_cannot_be_asked(tmp_path: Path) -> None:
    async with an_otc_front(tmp_path, runs=False, chain=AwayChain) as front:
        order = front.an_order()
        response = await front.ask("POST", P2P, msgspec.json.encode(front.body(order)))
        assert response.status == 503
        assert ("retry-after", "1") in {(k.decode().lower(), v.decode()) for k, v in response.headers}
        assert told((503, msgspec.json.decode(response.body)))[1] == "ServiceUnavailable"
        assert (await front.answer(f"/ft/order/{front.hash_of(order)}"))[0] == 404
        refusal = await front.fault(front.an_order(maker_amount=0))
        assert refusal[:2] == INVALID, "what needs no chain is said all the same"


@asynccontextmanager
async def a_remembering_front(folder: Path, *, runs: bool) -> AsyncIterator[tuple[OtcFront, Remembering]]:
    chains: list[Remembering] = []

    def chain_of(chain: Any) -> Remembering:
        chains.append(Remembering(chain))
        return chains[-1]

    async with an_otc_front(folder, runs=runs, chain=chain_of) as front:
        yield front, chains[-1]


async def test_an_order_is_taken_by_a_recent_block_and_without_funds_judged_by_the_latest(
    tmp_path: Path,
) -> None:
    """A node that is far away is asked once; an approval that was just mined counts."""
    async with a_remembering_front(tmp_path, runs=False) as (front, chain):
        world = front.world
        assert (await front.posted(front.an_order()))["state"] == "PENDING"
        assert chain.latest == 0
        owner = world.stranger.address
        poor = front.an_order(maker=owner, nonce_and_meta=pack_otc(owner, 1))
        await world.give(world.stranger, world.usdc, 2_500 * USDC, world.at.rfq)
        assert (await front.posted(poor, world.stranger))["state"] == "PENDING"
        assert chain.latest == 1


async def test_a_fill_whose_log_was_read_before_the_post_is_seen(tmp_path: Path) -> None:
    """The indexer is past the recent block: it will not bring the fill again."""
    async with a_remembering_front(tmp_path, runs=True) as (front, _):
        first = front.an_order()
        stored = await front.posted(first)
        later = front.an_order()
        await front.fill(later)
        await front.fill(first)
        await front.until(stored, state="FULFILLED")
        assert (await front.fault(later))[:2] == (400, "OrderClosed")


def test_an_order_is_what_makers_sign() -> None:
    assert RfqOrder.__struct_fields__[:2] == ("nonce_and_meta", "expiry")
    assert RFQ_ORDER.compiled.type_hash.hex() == (
        "95afddf5e4bb9f692716b7fdff640e6b8a0d2869597405c6e9d35857ed19a150"
    )
