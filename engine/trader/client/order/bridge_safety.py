"""Checks of the bridge in a venue's price across chains, before the trader signs its terms. Pure.

    origin       if the trader insists on a token, this token enters the bridge
    destination  no second swap: the wished token arrives
                 native tokens arrive by Across alone, whose output token is then their wrapped form
    terms        the protocol is known, and its contract takes the terms; the output token and the difference
                 of decimals are right; CCTP's number of the destination chain is right, if it is public
    fee          at most the share of the priced amount that the trader allows
    output       at most the part of the entering amount that the fee leaves
    time         for Across: the time for a fill is within limits, and an exclusive relayer's time is shorter
    contract     the Delta contract hands tokens to the public pool of Across or messenger of CCTP, if the
                 address of that pool or messenger is public

A failed bridge pays back the token that entered the bridge: a false token would cost the trader the whole
sold amount. The trader sees which token the venue chose; `BridgeWish.via` permits one token alone.

Source: spec 1.7; codecs.bridges.bridge_terms; Across `fillDeadlineBuffer`; Circle, "CCTP domains".
Choice: The trader takes no route whose destination has a swap: the trader would have to trust the venue's
    choice of a contract on the other chain.
Choice: A CCTP domain or a bridge's contract without a public number or address is accepted, and shown before
    the trader agrees.
"""

from collections.abc import Iterator

from .....codecs.amounts import parse_amount
from .....codecs.bridges.bridge_terms import (
    SELECTORS,
    AcrossTerms,
    BridgeKind,
    BridgeTerms,
    CctpTerms,
    fee_of,
    output_of,
    parse_terms,
)
from .....codecs.eip712_orders.delta import DeltaBridge
from .....codecs.messages.delta_messages import Route
from .....config import limits
from .....config.chains import CCTP_DOMAINS, CCTP_MESSENGER, SPOKE_POOLS
from .....config.errors import UnsafeTransaction
from .....crypto.addresses import parse_address, to_checksum
from .....crypto.hexadecimal import parse_hex
from ..order_terms import BridgeWish, CheckedBridge, OrderWish
from ..safety import ComparedMember, hold, token_spelling, unsafe_if_invalid
from ..terms import TradedToken

_PARAMS = "route.bridge.contractParams"


def entering_token(route: Route, wish: OrderWish, bridging: BridgeWish) -> str:
    """Check the token that enters the bridge of a route, and return the token's address.

    Raises:
        UnsafeTransaction: the token is on another chain, or is not the token that the trader insists on.
    """
    token = route.origin.output.token
    hold([("chainId of route.origin.output", wish.chain_id, token.chain_id)])
    if bridging.via is not None:
        spelt = token_spelling(token.address, "destToken")
        hold([("address of route.origin.output", bridging.via.text, spelt)])
    return token.address


def check_bridge(route: Route, wish: OrderWish, bridging: BridgeWish, token: TradedToken) -> CheckedBridge:
    """Check the bridge of a venue's route to another chain.

    Args:
        route: the route, whose ends `order_safety.check_price` accepted.
        token: the token that enters the bridge, with decimals of its contract.

    Raises:
        UnsafeTransaction: a member of the route contradicts the request or the terms; the error names the
            member.

    Guarantees: the priced amount, less the fee of the terms, gives at least the priced output. Delivery is
    not guaranteed: the trader trusts the bridge with the tokens that enter the bridge.
    """
    bridge = route.bridge
    if bridge is None:
        raise UnsafeTransaction("route.bridge", "a bridge to the other chain", None)
    params = bridge.contract_params
    with unsafe_if_invalid(_PARAMS):
        signed = DeltaBridge(
            parse_hex(params.protocol_selector, f"{_PARAMS}.protocolSelector"),
            bridging.chain_id,
            parse_address(params.output_token, f"{_PARAMS}.outputToken"),
            params.scaling_factor,
            parse_hex(params.protocol_data, f"{_PARAMS}.protocolData"),
        )
        terms = parse_terms(signed)
        entering = parse_amount(route.origin.output.amount, "route.origin.output.amount")
        arriving = parse_amount(route.destination.output.amount, "route.destination.output.amount")
    hold(_ends(route, wish, bridging, signed, token))
    if isinstance(terms, CctpTerms) and bridging.chain_id in CCTP_DOMAINS:
        hold([(f"{_PARAMS}.protocolData, domain", CCTP_DOMAINS[bridging.chain_id], terms.domain)])
    if isinstance(terms, AcrossTerms):
        _check_times(terms)
    # Multiplied out: a rounded quotient would let a fee pass that is a part of a basis point too high.
    fee = fee_of(terms.fee, entering)
    if fee * limits.BPS_ONE > entering * bridging.fee_bps_max:
        allowed = f"at most {bridging.fee_bps_max} basis points of {entering}"
        raise UnsafeTransaction("the bridge's fee", allowed, fee)
    # A price that promises more than the bridge can deliver would give a bound that no settlement meets.
    most = output_of(terms.fee, signed.scaling_factor, entering)
    if arriving > most:
        raise UnsafeTransaction("route.destination.output.amount", f"at most {most}", arriving)
    return CheckedBridge(
        name=bridge.protocol,
        token=token,
        signed=signed,
        terms=terms,
        estimated_ms=bridge.estimated_time_ms,
        fee=fee,
    )


def contract_getter(terms: BridgeTerms) -> str:
    """Name of the function of `Bridges`, a module of the Delta contract, that gives the bridge's contract."""
    return "spokePool" if isinstance(terms, AcrossTerms) else "tokenMessenger"


def check_contract(chain_id: int, bridge: CheckedBridge) -> None:
    """Check the bridge's contract to which the Delta contract of a chain hands tokens.

    Raises:
        UnsafeTransaction: the bridge is not enabled, or its contract is not the public one of the chain.
    """
    if not any(bridge.contract):
        raise UnsafeTransaction("the bridge's contract", "an address", to_checksum(bridge.contract))
    public = public_contract(chain_id, bridge.terms)
    if public:
        hold([("the bridge's contract", public, to_checksum(bridge.contract))])


def public_contract(chain_id: int, terms: BridgeTerms) -> str:
    """Public address of a bridge's contract on the origin chain; empty if this release knows none."""
    if isinstance(terms, AcrossTerms):
        return SPOKE_POOLS.get(chain_id, "")
    return CCTP_MESSENGER if chain_id in CCTP_DOMAINS else ""


def _ends(
    route: Route, wish: OrderWish, bridging: BridgeWish, signed: DeltaBridge, token: TradedToken
) -> Iterator[ComparedMember]:
    dest, arrives = wish.dest, route.destination.input
    output = dest if bridging.wrapped is None else bridging.wrapped
    yield f"{_PARAMS}.outputToken", output.address.hex(), signed.output_token.hex()
    if dest.is_native:
        across = SELECTORS[BridgeKind.ACROSS]
        yield f"{_PARAMS}.protocolSelector", across.hex(), signed.protocol_selector.hex()
    yield f"{_PARAMS}.scalingFactor", dest.decimals - token.decimals, signed.scaling_factor
    yield "chainId of route.destination.input", wish.dest_chain_id, arrives.token.chain_id
    spelt = token_spelling(arrives.token.address, "destToken")
    yield "address of route.destination.input", dest.text, spelt
    yield "route.destination.input.amount", route.destination.output.amount, arrives.amount


def _check_times(terms: AcrossTerms) -> None:
    """Check that an unfilled deposit is refunded in time, and that one relayer alone cannot prevent a
    fill."""
    least, most = limits.BRIDGE_FILL_MIN_S, limits.BRIDGE_FILL_MAX_S
    if not least <= terms.fill_within_s <= most:
        raise UnsafeTransaction(
            f"{_PARAMS}.protocolData, seconds to fill", f"{least} to {most}", terms.fill_within_s
        )
    if terms.exclusivity_s >= terms.fill_within_s:
        raise UnsafeTransaction(
            f"{_PARAMS}.protocolData, seconds of exclusivity",
            f"below {terms.fill_within_s}",
            terms.exclusivity_s,
        )
