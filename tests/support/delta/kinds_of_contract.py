"""Orders that name a further contract, a vault or a handler, without a chain."""

from typing import Any

from msgspec.structs import asdict

from cambist.codecs.eip712_orders.delta import ExternalOrder, ProductiveOrder
from cambist.engine.delta.bids.bids import RoundOrder
from cambist.engine.delta.orders.document import DeltaDocument, order_json
from cambist.engine.delta.orders.terms import next_part, terms_of
from support.delta.bidding import SIGNATURE, a_delta_order, hash_of

VAULT, HANDLER = b"\x7a" * 20, b"\x4a" * 20


def a_productive_order(**changed: Any) -> ProductiveOrder:
    """Sells 1 WETH out of a vault, of which there are 3 shares for 4 WETH; `changed` are members."""
    members = asdict(a_delta_order())
    del members["kind"]
    terms: dict[str, Any] = {"strategy": VAULT, "shares": 10**18, "use_shares": True}
    return ProductiveOrder(**members | terms | changed)


def an_external_order(*, buys: bool = False, **changed: Any) -> ExternalOrder:
    """Sells 1 WETH by a handler for 2,400 USDC; or buys 2,500 USDC for 1.1 WETH at most, 1 expected."""
    members = asdict(a_delta_order(buys=buys))
    del members["beneficiary"], members["bridge"]
    terms: dict[str, Any] = {"handler": HANDLER, "data": b"\1"}
    return ExternalOrder(**members | terms | changed)


def asked_for(order: ProductiveOrder | ExternalOrder, number: int = 1) -> RoundOrder:
    """An order of a round; the number makes its hash."""
    kind = type(order).__name__
    part = next_part(order, 0)
    assert part is not None
    kept = DeltaDocument(kind, order_json(kind, order), SIGNATURE)
    return RoundOrder(hash_of(number), order, kept, terms_of(order), part)
