"""Bodies of POST requests that a venue accepts, and orders that it keeps (`venue_role.running_venue`)."""

from typing import Any, cast

import msgspec

from cambist.codecs.eip712_orders.nonce_and_meta import pack_otc
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder, rfq_domain_separator
from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.crypto.addresses import ZERO_ADDRESS, to_checksum
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.crypto.signatures import to_compact64
from cambist.engine.store.rows import OrderDocument
from cambist.engine.store.tables import AUCTION_ROUND, DELTA_DOCUMENT, DELTA_ORDER
from cambist.engine.store.units import Done, Unit, new, put
from cambist.engine.trade.delta.auction.auction import decide
from cambist.engine.trade.delta.auction.auction_record import Rejections, RoundTimes, round_rows
from cambist.engine.trade.delta.orders.document import encode_document
from cambist.engine.trade.orders.order_units import order_id
from support.delta.bidding import a_proven, a_round_order
from support.store.stores import a_delta_order as a_row
from support.venue.trading_requests import a_sale
from support.venue.venue_role import CHAIN_ID, USER, RunningVenue

BUILD = "/v2/delta/orders/build"
SUBMIT = "/v2/delta/orders"
BUILD_CANCEL = "/v2/delta/orders/build/cancellation"
POST_OTC = "/ft/p2p/{chainId}"


async def a_body(venue: RunningVenue) -> dict[str, Any]:
    """Buildable body of POST /transactions: the user has the source tokens and has allowed them."""
    await venue.devnet.allow(USER, "WETH", "router")
    return await a_sale(venue)


async def an_order(venue: RunningVenue) -> dict[str, Any]:
    """Buildable body of POST /v2/delta/orders/build."""
    quote = await venue.get("/v2/quote", **venue.selling("WETH", 1, "USDC", mode="DELTA"))
    return {"route": quote["delta"]["route"], "owner": to_checksum(USER.address), "deadline": 2**37}


async def a_submission(venue: RunningVenue) -> dict[str, Any]:
    """Valid body of POST /v2/delta/orders: a limit order that no agent fills."""
    await venue.devnet.allow(USER, "WETH", "delta")
    status, built = await venue.post(BUILD, await an_order(venue) | {"limitAmount": str(10**15)})
    assert status == 200, built
    signature = to_compact64(*USER.sign(parse_hex(built["orderHash"], "orderHash")))
    order = built["toSign"]["value"]
    return {"chainId": CHAIN_ID, "order": order, "signature": to_hex(signature), "type": "LIMIT"}


async def a_kept_order(venue: RunningVenue) -> str:
    """The id of one."""
    status, record = await venue.post(SUBMIT, await a_submission(venue))
    assert status == 200, record
    order_id: str = record["id"]
    return order_id


async def a_cancellation(venue: RunningVenue) -> dict[str, Any]:
    """Valid body of POST /v2/delta/orders/cancel."""
    ids = [await a_kept_order(venue)]
    _, built = await venue.post(BUILD_CANCEL, {"orderIds": ids})
    signature = to_compact64(*USER.sign(parse_hex(built["hash"], "hash")))
    return {"orderIds": ids, "signature": to_hex(signature)}


def an_otc_order(venue: RunningVenue) -> dict[str, Any]:
    """Valid body of POST /ft/p2p/{chainId}."""
    place = venue.app.chains[CHAIN_ID]
    domain = rfq_domain_separator(place.settings.rfq_domain_name, CHAIN_ID, place.rfq)
    assets = (venue.devnet.at("WETH"), venue.devnet.at("USDC"))
    order = RfqOrder(pack_otc(USER.address, 1), 0, *assets, USER.address, ZERO_ADDRESS, 10**15, 10**6)
    signature = to_compact64(*USER.sign(RFQ_ORDER.compiled.digest_for(domain)(order)))
    return {
        **RFQ_ORDER.to_wire(order),
        "nonceAndMeta": str(order.nonce_and_meta),
        "expiry": 0,
        "signature": to_hex(signature),
    }


async def a_kept_otc_order(venue: RunningVenue) -> str:
    """The hash of one."""
    status, stored = await venue.post(POST_OTC.replace("{chainId}", str(CHAIN_ID)), an_otc_order(venue))
    assert status == 200, stored
    order_hash: str = stored["orderHash"]
    return order_hash


async def what_there_is(venue: RunningVenue) -> dict[str, Any]:
    """Keep an order that is filled, a round that it was in, and an OTC order.

    Returns:
        Placeholder of a path -> value that leads there.
    """
    asked = a_round_order(1)
    settled = {"status": OrderStatus.COMPLETED, "is_final": True, "chain_id": CHAIN_ID}
    row = msgspec.structs.replace(a_row(), order_hash=asked.order_hash, shard=asked.order_hash[0], **settled)
    times = RoundTimes(7, CHAIN_ID, row.created_ms, row.created_ms + 1_000)
    decision = decide([asked], [a_proven("alpha", (asked, asked.limit))], 0, {})
    (kept,) = round_rows(times, decision.verdicts.values(), Rejections(()))
    changes = (
        new(DELTA_ORDER, row),
        put(DELTA_DOCUMENT, OrderDocument(row.order_hash, encode_document(asked.document))),
        put(AUCTION_ROUND, kept),
    )
    assert await cast("Any", venue.app)._store.write(Unit(changes)) == Done()
    return {
        "auctionId": 7,
        "orderId": str(order_id(row.order_hash)),
        "hash": f"0x{row.order_hash.hex()}",
        "orderHash": await a_kept_otc_order(venue),
        "account": to_checksum(USER.address),
    }
