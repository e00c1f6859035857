"""choices.md#market-swaps, POST /transactions/{chainId} with `orders`, over HTTP: each rule and each error
row.

A case changes a buildable request; a test lists the names of cases with a wrong answer and expects none.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from cambist.codecs.contracts.calldata import cancel_order
from cambist.codecs.contracts.router_decoding import decode_swap
from cambist.codecs.eip712_orders.nonce_and_meta import pack_firm, pack_otc
from cambist.codecs.eip712_orders.partner_and_fee import unpack_partner_and_fee
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex
from cambist.engine.chain.transact import transact
from support.chain.world import ONE
from support.otc.swap_orders import an_order, hash_of, sent
from support.venue.trading_requests import API_KEY, NATIVE, NOBODY, OPTIONS, TRADER, posted
from support.venue.venue_role import CHAIN_ID, MAKER_KEYS, STRANGER, USER, RunningVenue, running_venue

Body = dict[str, Any]
SHAPE = {"errorType", "details", "description", "error", "requestId"}
MAKER = MAKER_KEYS["alpha"]
GROSS = 2_500 * 10**6
LATER_S = 4_000_000_000


class Desk:
    """Signs orders of `alpha`, and asks the venue."""

    def __init__(self, venue: RunningVenue) -> None:
        self.venue = venue
        self.at = venue.devnet.at

    def order(self, **changed: Any) -> RfqOrder:
        """2,500 USDC for one WETH."""
        plain = {"maker_asset": self.at("USDC"), "taker_asset": self.at("WETH"), "maker": MAKER.address}
        return an_order(**plain | {"expiry": LATER_S} | changed)

    def item(self, order: RfqOrder | None = None, **more: Any) -> Body:
        """As it is sent."""
        return sent(order or self.order(), MAKER, self.at("rfq"), **more)

    def body(self, *items: Body, **changed: Any) -> Body:
        """Body of a request that the venue builds."""
        plain = {
            "orders": list(items) or [self.item()],
            "srcToken": self.venue.devnet.text("WETH"),
            "destToken": self.venue.devnet.text("USDC"),
            "srcAmount": str(ONE),
            "slippage": 100,
            "userAddress": TRADER,
        }
        return plain | changed

    async def asked(self, body: Body, query: str = "", slash: str = "") -> tuple[int, Any]:
        """Status and JSON."""
        response = await posted(self.venue, body, query, slash)
        return response.status, msgspec.json.decode(response.body)

    async def faults(self, name: str, body: Body, refusal: tuple[int, str, str]) -> list[str]:
        """Faults of a request's refusal."""
        status, told = await self.asked(body)
        if status == 200:
            return [f"{name}: it is built"]
        said = status, told["errorType"], told["details"]
        if set(told) != SHAPE or said[:2] != refusal[:2] or refusal[2] not in said[2]:
            return [f"{name}: {said}"]
        return []


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncIterator[Desk]:
    async with running_venue(tmp_path, **OPTIONS) as venue:
        await venue.devnet.allow(USER, "WETH", "router")
        yield Desk(venue)


def _input(text: str) -> tuple[int, str, str]:
    return 400, "InvalidInput", f"Invalid input: {text}"


async def test_rules_of_the_request(desk: Desk) -> None:
    one, text = desk.item, desk.venue.devnet.text
    otc = {"nonce_and_meta": pack_otc(MAKER.address, 5)}
    made_out = desk.order(taker=desk.at("executor"), nonce_and_meta=pack_firm(STRANGER.address, 7))
    for_user = desk.order(taker=USER.address, **otc)
    cases: list[tuple[str, Body, tuple[int, str, str]]] = [
        ("both", desk.body(priceRoute={"a": 1}), _input("orders: the body has a priceRoute already")),
        ("neither", desk.body() | {"orders": None}, _input("priceRoute: missing, and the body has no")),
        ("none", desk.body(orders=[]), _input("orders: expected an array of length >= 1")),
        ("17", desk.body(*[one() for _ in range(17)]), _input("orders: expected an array of length <= 16")),
        (
            "twice",
            desk.body(*[one(desk.order(nonce_and_meta=77))] * 2),
            _input("orders[1]: the order stands twice in the list"),
        ),
        ("no signature", desk.body(one(signature=None)), _input("orders[0].signature: missing")),
        ("no address", desk.body(one(maker="0x1")), _input("orders[0].maker")),
        ("a number", desk.body(one(makerAmount=5)), _input("orders[0].makerAmount: expected a string")),
        (
            "nothing",
            desk.body(one(takerAmount="0")),
            _input("orders[0].takerAmount: expected an amount above 0"),
        ),
        ("source", desk.body(one(takerAsset=text("DAI"))), _input("orders[0].takerAsset: expected 0x")),
        ("dest", desk.body(one(), one(makerAsset=text("DAI"))), _input("orders[1].makerAsset: expected 0x")),
        (
            "whole",
            desk.body(one(takerTokenFillAmount=str(ONE + 1))),
            _input("orders[0].takerTokenFillAmount"),
        ),
        ("P2P", desk.body(one(for_user)), _input("orders[0].taker: expected zero, or the Router's executor")),
        ("why", desk.body(one(for_user)), (400, "InvalidInput", f"at the RFQ contract {text('rfq')}")),
        ("user", desk.body(one(made_out)), _input("orders[0].nonceAndMeta: expected userAddress")),
        ("side", desk.body(side="BOTH"), _input("side: expected one of SELL, BUY")),
        ("amount", desk.body(srcAmount=None), _input("srcAmount: missing")),
        (
            "too much",
            desk.body(srcAmount=str(ONE + 1)),
            _input("orders: expected orders that take srcAmount"),
        ),
        ("bound", desk.body(destAmount=str(GROSS)), _input("destAmount: expected at most the proceeds")),
        ("deadline", desk.body(deadline=1), (400, "OrderExpired", "Order expired: deadline")),
        ("token", desk.body(srcToken=NOBODY), (400, "TokenNotSupported", "Token not supported")),
        ("native", desk.body(srcToken=NATIVE.lower()), (400, "InvalidToken", "Invalid srcToken")),
        ("one token", desk.body(destToken=NATIVE), (400, "NoRoute", "No route")),
        (
            "partner",
            desk.body(partner="small", partnerFeeBps="16"),
            (422, "PartnerNotAllowed", "Partner not"),
        ),
        (
            "wrong",
            desk.body(one(signature="0x" + "11" * 65)),
            (400, "InvalidSignature", "orders[0].signature"),
        ),
        (
            "wrong name",
            desk.body(one(name="Cambist RFQ")),
            (400, "InvalidSignature", "orders[0].signature: the owner signed for the domain Cambist RFQ"),
        ),
        ("permit", desk.body(one(permitMakerAsset="0x" + "00" * 96)), _input("orders[0].permitMakerAsset")),
    ]
    faults: list[str] = []
    for case in cases:
        faults += await desk.faults(*case)
    assert faults == []
    target = "/transactions/5"
    response = await desk.venue.ask("POST", target, msgspec.json.encode(desk.body()))
    assert (response.status, msgspec.json.decode(response.body)["errorType"]) == (422, "UnsupportedChain")


async def test_what_the_chain_says_of_orders(desk: Desk) -> None:
    one, chain = desk.item, desk.venue.devnet.chain
    cancelled = desk.order()
    await transact(chain, MAKER, desk.at("rfq"), cancel_order(hash_of(cancelled, desk.at("rfq"))))
    gone, poor = desk.order(expiry=1_000_000_000), desk.order(maker_amount=10**24)
    strangers = replace(desk.order(), maker=STRANGER.address)
    by_stranger = sent(strangers, STRANGER, desk.at("rfq"))
    not_alphas = sent(desk.order(), STRANGER, desk.at("rfq"))
    devnet = desk.venue.devnet
    await devnet.allow(USER, "USDC", "router")
    terms = {"maker_asset": desk.at("WETH"), "taker_asset": desk.at("USDC")}
    native = {"srcToken": devnet.text("USDC"), "destToken": NATIVE, "srcAmount": str(GROSS)}
    to_a_contract = desk.body(
        one(desk.order(maker_amount=ONE, taker_amount=GROSS, **terms)),
        receiver=devnet.text("permit2"),
        **native,
    )
    cases: list[tuple[str, Body, tuple[int, str, str]]] = [
        ("closed", desk.body(one(cancelled)),
         (400, "OrderClosed", "Order closed on the chain: orders[0] is filled or cancelled; what is left")),
        ("expired", desk.body(one(gone)), (400, "OrderExpired", "Order expired: orders[0].expiry: expected")),
        ("funds", desk.body(one(poor)), (400, "InsufficientBalance", "orders[0]: its maker")),
        ("allowance", desk.body(by_stranger), (400, "InsufficientAllowance", "lets the RFQ contract take 0")),
        ("somebody else", desk.body(one(), not_alphas),
         (400, "InvalidSignature", f"orders[1].signature: {to_checksum(STRANGER.address)} signed this")),
        ("the user's balance", desk.body(one(desk.order(taker_amount=10**30)), srcAmount=str(10**29)),
         (400, "InsufficientBalance", "userAddress: expected at least")),
        ("the user's allowance", desk.body(userAddress=to_checksum(STRANGER.address)),
         (400, "InsufficientAllowance", "for the Market router")),
        ("the user's allowance for Permit2", desk.body(permit="0x01"),
         (400, "InsufficientAllowance", "of srcToken for Permit2")),
        ("the swap as a whole", to_a_contract,
         (400, "SimulationFailed", "Simulation failed: NATIVE_TRANSFER_FAILED")),
    ]  # fmt: skip
    faults: list[str] = []
    for case in cases:
        faults += await desk.faults(*case)
    assert faults == []
    status, told = await desk.asked(desk.body(*map(one, (cancelled, gone, poor, desk.order()))))
    assert status == 200, told
    _, swap = decode_swap(parse_hex(told["data"], "data"))
    assert [info.order.maker_amount for info in swap.hops[0].orders] == [10**24, GROSS]


async def test_answers_have_the_members_of_the_spec(desk: Desk) -> None:
    envelope = {"from", "to", "value", "data", "gasPrice", "gas", "chainId"}
    rows = [
        ("", envelope),
        ("ignoreChecks=true", envelope - {"gas"}),
        ("ignoreGasEstimate=true", envelope - {"gas"}),
        ("eip1559=true", envelope - {"gasPrice"} | {"maxFeePerGas", "maxPriorityFeePerGas"}),
        ("onlyParams=true", {"method", "params", "contract"}),
    ]
    for slash in ("", "/"):
        for query, members in rows:
            status, told = await desk.asked(desk.body(), query, slash)
            assert (status, set(told)) == (200, members), query
    bought = {"srcAmount": None, "destAmount": str(GROSS)}
    for changed, method in (({}, "swapExactIn"), (bought, "swapExactOut")):
        status, told = await desk.asked(desk.body(**changed), "onlyParams=true")
        assert (status, told["method"]) == (200, method)


async def test_the_partner_of_an_api_key_is_paid(desk: Desk) -> None:
    for key, changed, bps in (
        ({}, {}, 1),
        ({"X-API-KEY": API_KEY}, {}, 10),
        ({"X-API-KEY": API_KEY}, {"partner": "small"}, 5),
    ):
        raw = msgspec.json.encode(desk.body(**changed))
        response = await desk.venue.ask("POST", f"/transactions/{CHAIN_ID}", raw, key)
        assert response.status == 200
        _, swap = decode_swap(parse_hex(msgspec.json.decode(response.body)["data"], "data"))
        assert unpack_partner_and_fee(swap.partner_and_fee).fee_bps == bps
