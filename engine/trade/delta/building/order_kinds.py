"""Builds the kinds of orders that name a further contract: a handler, or the vault of a strategy. Pure.

    Order of a build + handler, data       -> ExternalOrder
    Order of a build + strategy, shares    -> ProductiveOrder

Source: spec 1.16.22 to 1.16.27, 1.25.24 to 1.25.27; contracts/ProductiveSettler.sol.
Choice: A build of a ProductiveOrder asks the vault how many shares give the route's input: with `useShares`
    the order sells these shares, else it sells the input for at most these shares and `slippage` more.
Choice: An ExternalOrder pays its owner: a build with another `beneficiary` is refused.
Choice: `data` for a handler is at most 16 KiB.
Choice: The settings name the handlers of a chain, `*` for any contract. By default a chain has no handler,
    and a devnet admits any contract. The venue's relayer pays for the gas of a handler's call.
"""

from collections.abc import Collection
from typing import Any

from msgspec.structs import asdict

from .....codecs.contracts.vault_calldata import preview_withdraw, vault_amount
from .....codecs.eip712_orders.delta import (
    EXTERNAL_ORDER,
    ORDER,
    PRODUCTIVE_ORDER,
    AnyDeltaOrder,
    DeltaOrder,
    ExternalOrder,
    ProductiveOrder,
)
from .....codecs.eip712_orders.typed_struct import TypedStruct
from .....codecs.messages.delta_messages import BuildBody
from .....codecs.messages.vocabulary import BuildOrderType
from .....codecs.rounding import mul_div_up
from .....config.chains import ChainSettings
from .....config.errors import (
    InvalidExternalOrderParams,
    InvalidInput,
    InvalidProductiveOrderParams,
    ServiceUnavailable,
)
from .....config.limits import BPS_ONE, HANDLER_DATA_BYTES_MAX, VAULT_GAS_MAX
from .....crypto.addresses import ZERO_ADDRESS, parse_address, to_checksum
from .....crypto.hexadecimal import parse_hex
from ....chain.port import EthCall
from ..orders.vault_checks import check_shares


def strategy_in(body: BuildBody) -> bytes:
    """Return the vault that the body of a build names, 20 bytes.

    Raises:
        InvalidProductiveOrderParams: the body names no vault.
        InvalidInput: the text is no address.
    """
    if body.strategy is None:
        raise InvalidProductiveOrderParams(field="strategy")
    return parse_address(body.strategy, "strategy")


AdmittedHandlers = Collection[bytes] | None
"""Addresses of a chain's handlers, 20 bytes each; None for any contract."""


def handlers_of(chain: ChainSettings) -> AdmittedHandlers:
    """Return the handlers that a chain's settings admit; None if the settings admit any contract."""
    if "*" in chain.handlers:
        return None
    return frozenset(parse_address(handler, "handlers") for handler in chain.handlers)


def handler_in(body: BuildBody, handlers: AdmittedHandlers) -> tuple[bytes, bytes]:
    """Return the handler (20 bytes) that the body of a build names, and the data for it.

    Args:
        handlers: handlers of the chain.

    Raises:
        InvalidExternalOrderParams: the body lacks the handler or the data, names a handler that is not
            admitted, or names another beneficiary than the owner.
        InvalidInput: the handler is no address, or the data is malformed or too long.
    """
    if body.handler is None or body.data is None:
        raise InvalidExternalOrderParams(field="handler" if body.handler is None else "data")
    handler, data = parse_address(body.handler, "handler"), parse_hex(body.data, "data")
    check_handler(handler, data, handlers, "")
    owner = parse_address(body.owner, "owner")
    if body.beneficiary is not None and parse_address(body.beneficiary, "beneficiary") != owner:
        raise InvalidExternalOrderParams(
            field="beneficiary", expected=f"none, or the owner {to_checksum(owner)}", got=body.beneficiary
        )
    return handler, data


def check_handler(handler: bytes, data: bytes, handlers: AdmittedHandlers, prefix: str) -> None:
    """Check the handler of an order, and the length of the data for it.

    Args:
        handlers: handlers of the chain.
        prefix: path of the order in the request, for the errors' fields: `order.` or empty.

    Raises:
        InvalidExternalOrderParams: the handler is the zero address, or is not admitted.
        InvalidInput: the data is too long.
    """
    if handler == ZERO_ADDRESS or (handlers is not None and handler not in handlers):
        expected = "a contract" if handlers is None else "a handler that this venue admits"
        raise InvalidExternalOrderParams(
            field=f"{prefix}handler", expected=expected, got=to_checksum(handler)
        )
    if len(data) > HANDLER_DATA_BYTES_MAX:
        most = f"at most {HANDLER_DATA_BYTES_MAX} bytes"
        raise InvalidInput(field=f"{prefix}data", expected=most, got=f"{len(data)} bytes")


def check_kind_of_contract(body: BuildBody, handlers: AdmittedHandlers) -> None:
    """Check the parameters of an order type that names a further contract; other types pass.

    Args:
        handlers: handlers of the chain.

    Raises:
        RequestError: a parameter is missing or wrong; see `strategy_in` and `handler_in`.
    """
    if body.order_type is BuildOrderType.EXTERNAL_ORDER:
        handler_in(body, handlers)
    elif body.order_type is BuildOrderType.PRODUCTIVE_ORDER:
        strategy_in(body)


def of_kind(
    body: BuildBody, order: DeltaOrder, shares: int, handlers: AdmittedHandlers
) -> tuple[TypedStruct[Any], AnyDeltaOrder]:
    """Turn the Order of a build into the order type that the body asks for.

    Args:
        handlers: handlers of the chain.
        shares: shares of the vault that a ProductiveOrder signs; 0 for every other type.

    Returns:
        (EIP-712 type of the struct, the struct).
    """
    members = asdict(order)
    match body.order_type:
        case BuildOrderType.EXTERNAL_ORDER:
            del members["beneficiary"], members["bridge"]
            handler, data = handler_in(body, handlers)
            return EXTERNAL_ORDER, ExternalOrder(**members, handler=handler, data=data)
        case BuildOrderType.PRODUCTIVE_ORDER:
            del members["kind"]
            terms: dict[str, Any] = {"shares": shares, "use_shares": body.use_shares}
            return PRODUCTIVE_ORDER, ProductiveOrder(**members, strategy=strategy_in(body), **terms)
        case _:
            return ORDER, order


def shares_call(vault: bytes, amount: int) -> EthCall:
    """Build the call that asks a vault how many shares give an amount of its asset, raw units."""
    return EthCall(vault, preview_withdraw(amount), gas_max=VAULT_GAS_MAX)


def shares_to_sign(body: BuildBody, answer: bytes | Exception) -> int:
    """Compute from a vault's answer to `shares_call` the shares that a ProductiveOrder signs.

    Raises:
        ServiceUnavailable: the vault does not answer.
        InvalidProductiveOrderParams: the number of shares is 0, or more than an order can have.
    """
    shares = vault_amount(answer)
    if shares is None:
        raise ServiceUnavailable("the vault does not say how many shares give the route's input")
    if not body.use_shares:
        shares = mul_div_up(shares, BPS_ONE + body.slippage, BPS_ONE)
    check_shares(shares, "strategy")
    return shares
