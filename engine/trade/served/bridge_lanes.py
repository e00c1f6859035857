"""Lanes between served chains: bridges with their tokens and current fees, for quotes and for orders.

Source: spec 1.12, 1.22; choices.md#quotes-and-routes.
Choice: With `allowBridgeAndSwap` a sale may pass a bridge of another token than `destToken`, which makers
    swap on the destination, if it has an Arrivals contract. A purchase swaps on the origin alone.
Choice: Across pays wrapped native tokens unwrapped to accounts without code: its lane delivers the native
    token. Who wants the wrapped one gets it by an Arrivals contract, which wraps and pays out at once.
Choice: Case does not matter in names of bridges: public clients write Across as well as across.
Choice: A lane from `srcToken` itself takes it without a swap on the origin (bridge-only order). The venue
    settles such an order itself: there is nothing on which agents could bid.
"""

from collections.abc import Collection, Iterable, Iterator

from msgspec import Struct

from ....codecs.bridges.bridge_terms import (
    SELECTORS,
    AcrossTerms,
    BridgeFee,
    BridgeKind,
    BridgeTerms,
    CctpTerms,
    fee_of,
    kind_of,
    pack_terms,
    parse_terms,
)
from ....codecs.eip712_orders.delta import DeltaBridge
from ....codecs.messages.delta_messages import BridgeParams, QuoteParameters
from ....codecs.messages.vocabulary import Side
from ....config import limits
from ....config.errors import InvalidInput, NoRoute
from ....config.sections.bridges import BridgeSettings
from ....crypto.addresses import ZERO_ADDRESS, to_checksum
from ....crypto.hexadecimal import to_hex
from ....feeds.bridges.lane_fees import LaneFees
from ..routing.tokens import ListedToken
from .served_chain import ServedChain, ServedChains, served_chain_at

_MESSAGE = "No route (crosschain)"


class BridgeLane(Struct, frozen=True):
    """A bridge from a token on one chain to a token on another.

    Attributes:
        name: name of the bridge in the settings, `protocol` of the API.
        origin, destination: the token on the origin chain and on the destination chain.
        fees: current fee of the lane.
        native: the destination's native token, if the bridge pays it to accounts without code in place of
            `destination`; else None.
    """

    name: str
    settings: BridgeSettings
    origin_chain: int
    destination_chain: int
    origin: ListedToken
    destination: ListedToken
    fees: LaneFees
    native: ListedToken | None = None

    @property
    def delivers(self) -> ListedToken:
        """Token that arrives at an account without code."""
        return self.native or self.destination

    @property
    def kind(self) -> BridgeKind:
        """Protocol that the lane's bridge speaks."""
        return BridgeKind(self.settings.kind)

    @property
    def scaling_factor(self) -> int:
        """Decimals of the destination's token minus decimals of the origin's token."""
        return self.destination.decimals - self.origin.decimals

    def terms(self, fee: BridgeFee) -> BridgeTerms:
        """Return the terms that an owner signs for a transfer on this lane, at a fee."""
        if self.kind is BridgeKind.CCTP:
            return CctpTerms(fee, self.settings.finality, self.fees.lane.domains[1])
        return AcrossTerms(fee, self.settings.fill_within_s, ZERO_ADDRESS, 0)

    def params(self, fee: BridgeFee) -> BridgeParams:
        """Return `bridge.contractParams` of a route over this lane, at a fee."""
        return BridgeParams(
            to_hex(SELECTORS[self.kind]),
            self.destination.text,
            self.scaling_factor,
            to_hex(pack_terms(self.terms(fee))),
        )

    def carries(self, bridge: DeltaBridge, dest_token: bytes) -> bool:
        """Whether the lane has the tokens, the destination and the protocol of a signed bridge.

        Args:
            dest_token: `destToken` of the order, the bridge's token on the origin chain, 20 bytes.
        """
        return (bridge.destination_chain_id, bridge.output_token, dest_token, bridge.protocol_selector) == (
            self.destination_chain,
            self.destination.address,
            self.origin.address,
            SELECTORS[self.kind],
        )


class BridgeLanes:
    """The lanes that a venue serves.

    Args:
        chains: served chains by chain id.
        lanes: served lanes, in the order of the settings.
    """

    def __init__(self, chains: ServedChains, lanes: Iterable[BridgeLane] = ()) -> None:
        self._chains = chains
        self._lanes = tuple(lanes)

    def __iter__(self) -> Iterator[BridgeLane]:
        return iter(self._lanes)

    def wanted(self, query: QuoteParameters) -> tuple[BridgeLane, ...]:
        """Return the lanes that a quote from `chainId` to another chain, `destChainId`, may take.

        Returns:
            At least one lane; a lane from `srcToken` itself needs no swap on the origin. Lanes to `destToken`
            are first. Unless `allowBridgeAndSwap` is false, lanes follow whose native tokens the venue wraps
            into it, and for a sale, lanes to a token that makers may swap into it.

        Raises:
            NoRoute: the quote has no such lane; the error says why.
            UnsupportedChain: the venue does not serve the origin.
            InvalidToken, TokenNotSupported: a token is invalid, or not listed on its chain.
        """
        src_chain, dest_chain = query.chain_id, query.dest_chain_id or query.chain_id
        there = self._chains.get(dest_chain)
        if there is None:
            raise NoRoute(
                field="destChainId", expected="a chain of GET /chains", got=dest_chain, message=_MESSAGE
            )
        served = served_chain_at(self._chains, src_chain, "chainId")
        if served.no_delta:
            raise NoRoute(served.no_delta, message=_MESSAGE)
        served.tokens.find(query.src_token, "srcToken", query.src_decimals)
        dest = there.tokens.find(query.dest_token, "destToken", query.dest_decimals)
        between = self._between(src_chain, dest_chain)
        found = [lane for lane in between if lane.delivers is dest]
        wrapped = [lane for lane in between if lane.native and lane.destination is dest]
        found += wrapped if query.allow_bridge_and_swap and self.swaps_at(dest_chain) else ()
        # By `routed`: no books lead from a native token to its wrapped form, although they are two tokens.
        if query.allow_bridge_and_swap and query.side is Side.SELL and self.swaps_at(dest_chain):
            found += [lane for lane in between if lane.destination.routed != dest.routed]
        if not found:
            way = f"no bridge delivers {dest.symbol} on chain {dest_chain} from chain {src_chain}"
            if wrapped:
                way += f": what enters as {dest.symbol} arrives as {wrapped[0].delivers.symbol}"
            raise NoRoute(way, field="destToken", message=_MESSAGE)
        return tuple(_allowed(found, query.include_bridges, query.exclude_bridges))

    def is_direct(self, lane: BridgeLane, query: QuoteParameters) -> bool:
        """Whether a lane of `wanted` delivers `destToken` itself, wrapped or not."""
        dest = self._chains[lane.destination_chain].tokens.find(query.dest_token, "destToken", None)
        return dest in (lane.delivers, lane.destination)

    def unwraps(self, bridge: DeltaBridge) -> bool:
        """Whether a signed bridge pays native tokens to accounts without code, and its token to others."""
        there = self._chains.get(bridge.destination_chain_id)
        if there is None or kind_of(bridge) is not BridgeKind.ACROSS:
            return False
        return bridge.output_token == there.tokens.wrapped_native

    def swaps_at(self, chain_id: int) -> ServedChain | None:
        """Return a destination chain on which the venue swaps the tokens that bridges deliver.

        The result is None for a chain without such swaps.
        """
        there = self._chains.get(chain_id)
        return there if there is not None and there.arrivals and not there.no_delta else None

    def quoted(self, now_ms: int) -> Iterator[BridgeLane]:
        """Yield the lanes that quotes can take now.

        The bridge's fee is known and lets an amount enter, and gas has a value in the lane's token.
        """
        for lane in self._lanes:
            fee, origin = lane.fees.at(now_ms), self._chains.get(lane.origin_chain)
            is_open = fee is not None and fee.least <= fee.most
            if is_open and origin and not origin.no_delta and origin.values_gas_in(lane.origin):
                yield lane

    def delivered(self, lane: BridgeLane, *, with_swaps: bool) -> Iterator[ListedToken]:
        """Yield the tokens that a lane can bring: what arrives comes first.

        Args:
            with_swaps: whether to add the tokens into which makers on the destination chain may swap the
                lane's token, and the wrapped form of the native token that arrives.
        """
        yield lane.delivers
        there = self.swaps_at(lane.destination_chain) if with_swaps else None
        if there is None:
            return
        if lane.native:
            yield lane.destination
        for token in there.tokens.by_address.values():
            if there.pathfinder.paths(lane.destination.routed, token.routed):
                yield token

    def check(self, bridge: DeltaBridge, chain_id: int, dest_token: bytes) -> None:
        """Check that the venue serves a signed bridge.

        Args:
            chain_id: chain on which the order is settled.
            dest_token: `destToken` of the order, the bridge's token on that chain, 20 bytes.

        Raises:
            InvalidInput: no lane has the order's ends and protocol, or the signed terms do not fit the lane.
        """
        kind = kind_of(bridge)
        terms = parse_terms(bridge)
        lanes = [lane for lane in self._lanes if lane.origin_chain == chain_id]
        found = [lane for lane in lanes if lane.carries(bridge, dest_token)]
        if not found:
            way = f"{to_checksum(dest_token)} to {to_checksum(bridge.output_token)}"
            raise InvalidInput(
                f"{kind} carries no {way} on chain {bridge.destination_chain_id}",
                field="bridge",
                expected="a lane of GET /v2/delta/prices/bridge-routes",
            )
        scaling = found[0].scaling_factor  # the same for all of `found`, which have the same two tokens
        if bridge.scaling_factor != scaling:
            raise InvalidInput(field="bridge.scalingFactor", expected=str(scaling), got=bridge.scaling_factor)
        fitting = [
            lane_terms for lane_terms in (lane.terms(terms.fee) for lane in found) if _fits(terms, lane_terms)
        ]
        if not fitting:
            raise InvalidInput(
                field="bridge.protocolData",
                expected=" or ".join(_limits_of(lane.terms(terms.fee)) for lane in found),
                got=_limits_of(terms),
            )

    def carries_at_fee(
        self, bridge: DeltaBridge, chain_id: int, dest_token: bytes, amount: int, now_ms: int
    ) -> bool:
        """Whether a bridge carries an amount now at the fee that an owner signed.

        Args:
            bridge: a bridge that `check` accepted.
            chain_id: chain on which the order is settled.
            dest_token: the bridge's token on that chain, 20 bytes.
            amount: raw units that enter the bridge.

        Returns:
            The result is False also while no current fee is known, and for an amount outside the bridge's
            limits.
        """
        terms = parse_terms(bridge)
        signed = fee_of(terms.fee, amount)
        for lane in self._lanes:
            is_it = lane.origin_chain == chain_id and lane.carries(bridge, dest_token)
            now = lane.fees.at(now_ms) if is_it and _fits(terms, lane.terms(terms.fee)) else None
            if now is None or not now.least <= amount <= now.most:
                continue
            # `now.fee` has the margin that quotes add to the bridge's own fee. With the margin on both sides,
            # the comparison is whether the signed fee covers the bridge's own fee of this moment.
            with_margin = signed * (limits.BPS_ONE + lane.settings.margin_bps)
            if with_margin >= fee_of(now.fee, amount) * limits.BPS_ONE:
                return True
        return False

    def _between(self, origin: int, destination: int) -> list[BridgeLane]:
        ends = origin, destination
        return [lane for lane in self._lanes if (lane.origin_chain, lane.destination_chain) == ends]


def _allowed(
    lanes: Iterable[BridgeLane], include: Collection[str] | None, exclude: Collection[str] | None
) -> list[BridgeLane]:
    """Return the lanes that a request's names of bridges allow; raise NoRoute if none is left."""
    names = ", ".join(sorted({lane.name for lane in lanes}))
    kept = [lane for lane in lanes if include is None or is_named(lane.name, include)]
    if not kept:
        raise NoRoute(
            field="includeBridges", expected=f"one of {names}", got=",".join(include or ()), message=_MESSAGE
        )
    left = [lane for lane in kept if not is_named(lane.name, exclude or ())]
    if not left:
        raise NoRoute(field="excludeBridges", expected=f"a list without one of {names}", message=_MESSAGE)
    return left


def is_named(name: str, names: Collection[str]) -> bool:
    """Whether a bridge's name is among the names of a request, in any case."""
    return name.casefold() in {each.casefold() for each in names}


def _fits(signed: BridgeTerms, served: BridgeTerms) -> bool:
    """Whether the venue serves the signed terms, without regard to their fee."""
    if isinstance(signed, AcrossTerms) and isinstance(served, AcrossTerms):
        in_time = served.fill_within_s <= signed.fill_within_s <= limits.BRIDGE_FILL_MAX_S
        return in_time and not signed.exclusivity_s
    return signed == served


def _limits_of(terms: BridgeTerms) -> str:
    """Describe the parts of signed terms that the venue compares, for an error."""
    if isinstance(terms, CctpTerms):
        return f"finality {terms.min_finality} to domain {terms.domain}"
    return f"{terms.fill_within_s} s to fill, {terms.exclusivity_s} s of exclusivity"
