"""Parses a submitted Delta order and checks it against the rules and the chain's answers. Pure.

    identify          chain's domain + body -> struct type, struct, order hash
    checked           -> Submission: all checks without the chain
    submission_calls  -> calls to the chain, all at one block
    accepted          answers -> the order's first status

The error names the first fault in this order:

     1  members and their types; the chain, and whether Delta is served on it; members of the struct
     2  a kind of order that the venue settles
     3  a stored order is answered with its record, whatever other faults it has (by the caller)
     4  tokens: listed, two different ones; a bridge that the venue serves, and the swap after it
     5  amounts, a TWAP's sizes; vault or handler; fee, metadata; contradictions, agents, referrer
     6  permit: allowed or required, and the parties that it names
     7  partner: a name that the signed fee does not contradict
     8  deadline: `Order expired`, then time for all slices of a TWAP
     9  signature: its format, the owner's key; else, on chain, the owner's contract or pre-signature
    10  nonce and fills on chain; of an order from a vault, the vault's answers (`vault_checks`)
    11  allowance on chain, or the permit's grant
    12  balance on chain, or the deposit of native tokens
    13  nonce among the stored orders

A body with `type` LIMIT changes only the record of a TWAP, not the checks or the settlement.

Source: spec 1.17, 1.25; choices.md#fees-and-partners, choices.md#delta-orders,
    choices.md#signatures-and-permits, choices.md#quotes-and-routes.
Choice: Any correctly signed order of the venue's contract is accepted, built here or not; a partner's tier
    bounds builds alone, and signed fees reach 200 bps.
Choice: Tokens inside the signed struct are addresses in any case, the native placeholder included.
Choice: An order across chains is accepted if a served lane has its tokens, destination, protocol, scaling and
    terms: for Across, at least the settings' time to fill and no time of an exclusive relayer; for CCTP, the
    lane's finality and domain.
Choice: A sale may have a minimum of 0; every other amount is above 0. Amounts whose products exceed the
    contract's words are refused.
Choice: A deadline lies after now and before the year 10000. Zero and the native placeholder own no order.
Choice: A submission is 400 for `partiallyFillable` with a TWAP or a Permit2 transfer, `type` LIMIT with a
    permit, an `onChainOrderType` of another kind, an agent included and excluded, and over 100 agents.
Choice: An order settled on chain and not stored here is `Order already settled`: its earlier settlements are
    unknown.
Choice: A sale of native tokens needs the owner's deposit with Delta, for the next part at least; the refusal
    names the call that makes it.
Choice: Members of a submitted order tell its kind. The allowance covers the whole order, the balance the next
    part; other orders of the owner do not count. `referrerAddress` is checked and stored.
Choice: Nonces are unique among an owner's live and filled orders: a used one is `NonceUsed`. The nonce of a
    cancelled or expired order may be signed again.
"""

from collections.abc import Collection, Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from .....codecs.bridges.bridge_terms import PPM_ONE
from .....codecs.contracts.abi import WORD_BYTES
from .....codecs.contracts.calldata import balance_of
from .....codecs.contracts.delta_calldata import deposits, order_state
from .....codecs.contracts.delta_results import decode_order_state
from .....codecs.contracts.permit import PermitForm, permit_form
from .....codecs.eip712_orders.delta import (
    KIND_BUY,
    KIND_SELL,
    SAME_CHAIN,
    DeltaOrder,
    ExternalOrder,
    ProductiveOrder,
    TwapBuyOrder,
    TwapOrder,
    order_type_of,
)
from .....codecs.eip712_orders.signing_names import OrderDigests
from .....codecs.eip712_orders.typed_struct import TypedStruct
from .....codecs.iso_time import check_unix_seconds
from .....codecs.messages.delta_messages import SubmitBody
from .....codecs.messages.vocabulary import OnChainOrderType, OrderStatus, OrderType, Side
from .....codecs.messages.wire import decoder
from .....codecs.trading_token import NATIVE_TOKEN, check_account
from .....config import limits
from .....config.errors import (
    InsufficientBalance,
    InvalidInput,
    InvalidTWAPBuyParams,
    InvalidTWAPParams,
    NonceUsed,
    OrderAlreadySettled,
    OrderExpired,
    PermitRequired,
    ServiceUnavailable,
    TokenNotSupported,
    TwapDeadlineTooShort,
    TwapTotalTooSmall,
)
from .....config.sections.partners import RegisteredPartner, partner_of_order
from .....crypto.addresses import parse_address, to_checksum
from .....crypto.eip712 import signing_digest
from .....crypto.hexadecimal import to_hex
from ....chain.port import EthCall, Header
from ....store.rows import DeltaOrderRow, amount32
from ...routing.tokens import ListedToken, TokenTable
from ...served.bridge_lanes import BridgeLanes
from ...served.permit_proof import Taking, check_taking, check_words, taking_calls
from ...served.signed_by import (
    OwnerSignature,
    SignatureState,
    read_signature,
    signature_call,
    signature_state,
)
from ...served.token_permits import Answers
from ..building.build import DeltaDomain, check_metadata, check_purchase_slices
from ..building.order_kinds import AdmittedHandlers, check_handler
from ..orders.document import DeltaDocument, order_json
from ..orders.entering import entering, is_crosschain
from ..orders.funds import source_of
from ..orders.terms import (
    DeltaPart,
    OrderTerms,
    SettledOrder,
    UnslicedOrder,
    bridge_only_promise,
    is_bridge_only,
    is_scheduled,
    next_part,
    output_total,
    side_of,
    terms_of,
    whole_of,
)
from ..orders.transfers import bridge_of
from ..orders.vault_checks import check_shares, check_strategy, shares_needed, vault_calls
from .swap_checks import swap_after

_decode_object = decoder(dict[str, Any], bytes_max=limits.JSON_BYTES_MAX)
_TWAPS = (TwapOrder, TwapBuyOrder)


class IdentifiedDelta(Struct, frozen=True):
    """Order struct from the body of a submission, with the order hash that the owner signs.

    Attributes:
        order_type: EIP-712 type of the struct.
        order_hash: EIP-712 digest that the owner signs, 32 bytes.
        signing: digests of the order under its own EIP-712 domain and under others, so that an error can name
            a domain for which the owner signed by mistake.
    """

    order_type: TypedStruct[Any]
    order: SettledOrder
    order_hash: bytes
    signing: OrderDigests


class Rules(Struct, frozen=True):
    """Settings and time for the checks of a submitted order that need no call to a chain.

    Attributes:
        vaults: addresses of the chain's yield strategies, 20 bytes each.
        handlers: handlers of the chain; None for any.
        strict_partner: whether `partner` is required.
        default_partner: default partner of the API key; empty if the key has none.
        by_key: whether the request has an API key.
        now_ms: time of the submission, Unix milliseconds.
    """

    chain_id: int
    domain: DeltaDomain
    tokens: TokenTable
    bridges: BridgeLanes
    vaults: Collection[bytes]
    handlers: AdmittedHandlers
    partners: Mapping[str, RegisteredPartner]
    strict_partner: bool
    default_partner: str
    by_key: bool
    now_ms: int


class Submission(Struct, frozen=True):
    """Submitted Delta order that has passed all checks which need no call to a chain.

    Attributes:
        first: amounts of the order's first settlement.
        kind: `onChainOrderType` of the order's record.
        partner: name of the body's partner, or of the signed fee's partner; `anon` without a partner.
    """

    chain_id: int
    order: SettledOrder
    order_hash: bytes
    terms: OrderTerms
    first: DeltaPart
    signature: OwnerSignature
    type: OrderType
    kind: OnChainOrderType
    partner: str
    document: DeltaDocument

    @property
    def is_native(self) -> bool:
        """Whether the order sells the chain's native token."""
        return self.terms.src_token == NATIVE_TOKEN

    def row(self, status: OrderStatus, now_ms: int) -> DeltaOrderRow:
        """Make the order's first row for the store; `now_ms` is the time of submission, Unix milliseconds."""
        terms = self.terms
        return DeltaOrderRow(
            order_hash=self.order_hash,
            shard=self.order_hash[0],
            chain_id=self.chain_id,
            owner=terms.owner,
            nonce=amount32(terms.nonce),
            kind=self.kind,
            type=self.type,
            side=terms.side,
            partner=self.partner,
            created_ms=now_ms,
            expires_s=terms.deadline,
            version=1,
            status=status,
            updated_ms=now_ms,
            spent=amount32(0),
            received=amount32(0),
            is_final=False,
        )


# --- Without the chain --------------------------------------------------------------------------------


def identify(body: SubmitBody, domain: DeltaDomain) -> IdentifiedDelta:
    """Parse the body of a submission into the signed order struct and its hash.

    Raises:
        InvalidInput: the struct is invalid, or an order from a vault has a bridge.
    """
    try:
        wire = _decode_object(bytes(body.order))
    except InvalidInput as error:
        raise InvalidInput(error.detail.removeprefix(f"{error.message}: "), field="order") from None
    order_type = order_type_of(wire)
    order: SettledOrder = order_type.from_wire(wire)
    if isinstance(order, ProductiveOrder) and order.bridge != SAME_CHAIN:
        raise InvalidInput("a ProductiveOrder has no bridge", field="order.bridge")
    signing = domain.signing(order_type.compiled.hash_struct(order))
    order_hash = signing_digest(domain.separator, signing.struct_hash32)
    return IdentifiedDelta(order_type, order, order_hash, signing)


def checked(body: SubmitBody, found: IdentifiedDelta, rules: Rules) -> Submission:
    """Check a submitted order against all rules that need no call to a chain.

    Raises:
        RequestError: a rule is broken; see spec 1.25.
    """
    # In the order of the module's docstring: clients rely on it that the error names the first fault.
    order = found.order
    src = _check_tokens(order, rules.tokens)
    _check_bridge(body, order, rules)
    arrivals = swap_after(order, rules.bridges)
    check_account(order.owner, "order.owner")
    first = _check_amounts(order)
    _check_contracts(order, rules)
    terms = _terms(order)
    _check_bridge_only(order, terms, first, rules.tokens)
    check_metadata(order.metadata, "order.metadata")
    kind = _kind(body, found)
    document = _document(body, found, by_key=rules.by_key)
    _check_permit(body, order, src, rules.domain.contract)
    partner = _partner(body, terms, rules)
    _check_deadline(order, rules.now_ms // 1_000)
    signature = read_signature(body.signature, found.order_hash, order.owner, signing=found.signing)
    return Submission(
        chain_id=rules.chain_id,
        order=order,
        order_hash=found.order_hash,
        terms=terms,
        first=first,
        signature=signature,
        type=body.type,
        kind=kind,
        partner=partner,
        document=replace(document, signature=signature.kept, arrivals=arrivals),
    )


def _check_tokens(order: SettledOrder, tokens: TokenTable) -> ListedToken:
    """Check that the venue lists both tokens of an order, and that they differ; return the source token."""
    ends = []
    for name, address in (("srcToken", order.src_token), ("destToken", order.dest_token)):
        token = tokens.by_address.get(address)
        if token is None:
            raise TokenNotSupported(
                field=f"order.{name}", expected="a token of GET /tokens", got=to_checksum(address)
            )
        ends.append(token)
    src, dest = ends
    if src.routed == dest.routed and not (isinstance(order, DeltaOrder) and is_crosschain(order)):
        raise InvalidInput(field="order.destToken", expected="another token than srcToken", got=dest.text)
    return src


def _check_bridge_only(order: SettledOrder, terms: OrderTerms, first: DeltaPart, tokens: TokenTable) -> None:
    """Refuse a bridge-only order that its own amounts and fees keep from ever being settled."""
    if not isinstance(order, DeltaOrder) or not is_bridge_only(order, tokens.wrapped_native):
        return
    if bridge_only_promise(terms, first) is None:
        sells = terms.side is Side.SELL
        raise InvalidInput(
            "the fees that the order signs leave too little",
            field="order.destAmount" if sells else "order.srcAmount",
            expected="at most what the bridge delivers of srcAmount less the fees"
            if sells
            else "at least what the bridge takes for destAmount, with the fees",
            got=order.dest_amount if sells else order.src_amount,
        )


def _check_bridge(body: SubmitBody, order: SettledOrder, rules: Rules) -> None:
    """Check that the bridge of an order across chains is served, and that its amounts fit the contract."""
    bridge = bridge_of(order)
    if bridge == SAME_CHAIN:
        return
    try:
        rules.bridges.check(bridge, rules.chain_id, order.dest_token)
    except InvalidInput as error:
        raise InvalidInput(error.detail.removeprefix(f"{error.message}: "), field="order") from None
    if body.partially_fillable:
        raise InvalidInput(field="partiallyFillable", expected="false across chains", got=True)
    amounts = {"destAmount": output_total(order)}
    if isinstance(order, UnslicedOrder) and side_of(order) is Side.SELL:
        amounts["expectedAmount"] = order.expected_amount
    for name, amount in amounts.items():
        if entering(order, amount) * PPM_ONE > limits.UINT256_MAX:
            raise InvalidInput(
                field=f"order.{name}", expected="an amount that the bridge's terms carry", got=amount
            )


def _check_amounts(order: SettledOrder) -> DeltaPart:
    """Check that an order's amounts can be settled, part by part; return the first settlement's amounts."""
    if isinstance(order, UnslicedOrder):
        if isinstance(order, DeltaOrder | ExternalOrder) and order.kind not in (KIND_SELL, KIND_BUY):
            raise InvalidInput(field="order.kind", expected="0 (SELL) or 1 (BUY)", got=order.kind)
        _check_positive("order.srcAmount", order.src_amount)
        buys = side_of(order) is Side.BUY
        if buys:
            _check_positive("order.destAmount", order.dest_amount)
        if isinstance(order, ProductiveOrder):
            check_shares(order.shares, "order.shares")
            _check_product("order.shares", order.shares, order.src_amount)
        whole = whole_of(order)
        bound, name = (
            (order.src_amount, "order.srcAmount") if buys else (order.dest_amount, "order.destAmount")
        )
        _check_product(name, bound, whole)
        _check_product("order.expectedAmount", order.expected_amount, whole)
    else:
        _check_slices(order)
    first = next_part(order, 0)
    if first is None:
        raise InvalidInput(field="order", expected="something to settle")
    return first


def _check_contracts(order: SettledOrder, rules: Rules) -> None:
    """Check the contract that an order names beside its tokens: a configured vault, or a handler."""
    if isinstance(order, ProductiveOrder):
        check_strategy(order.strategy, rules.vaults, "order.strategy")
    if isinstance(order, ExternalOrder):
        check_handler(order.handler, order.data, rules.handlers, "order.")


def _check_slices(order: TwapOrder | TwapBuyOrder) -> None:
    faulty = InvalidTWAPParams if isinstance(order, TwapOrder) else InvalidTWAPBuyParams
    for name, value, least in (
        ("interval", order.interval, limits.TWAP_INTERVAL_MIN_S),
        ("numSlices", order.num_slices, limits.TWAP_SLICES_MIN),
    ):
        if value < least:
            raise faulty(field=f"order.{name}", expected=f"at least {least}", got=value)
    if isinstance(order, TwapOrder):
        totals = {"totalSrcAmount": order.total_src_amount}
        last = order.total_src_amount - order.total_src_amount // order.num_slices * (order.num_slices - 1)
        _check_product("order.destAmountPerSlice", order.dest_amount_per_slice, last)
    else:
        totals = {"totalDestAmount": order.total_dest_amount, "maxSrcAmount": order.max_src_amount}
        _check_product("order.maxSrcAmount", order.max_src_amount, order.total_dest_amount)
    for name, total in totals.items():
        if total < order.num_slices:
            raise TwapTotalTooSmall(field=f"order.{name}", got=total, message=f"{name} must be >= numSlices")
    if isinstance(order, TwapBuyOrder):
        check_purchase_slices(order, "order.maxSrcAmount")


def _check_positive(field: str, amount: int) -> None:
    if not amount:
        raise InvalidInput(field=field, expected="an amount above 0", got=amount)


def _check_product(field: str, amount: int, other: int) -> None:
    if amount * other > limits.UINT256_MAX:
        raise InvalidInput(field=field, expected="a product with the other amount below 2^256", got=amount)


def _terms(order: SettledOrder) -> OrderTerms:
    try:
        return terms_of(order)
    except InvalidInput as error:
        raise InvalidInput(
            field="order.partnerAndFee", expected=error.expected, got=order.partner_and_fee
        ) from None


def _kind(body: SubmitBody, found: IdentifiedDelta) -> OnChainOrderType:
    """Derive `onChainOrderType` from an order's struct; raise InvalidInput if the body contradicts it."""
    kind = OnChainOrderType(found.order_type.name)
    if body.partially_fillable:
        if kind is not OnChainOrderType.ORDER:
            raise InvalidInput(field="partiallyFillable", expected=f"false with {kind.value}", got=True)
        kind = OnChainOrderType.FILLABLE_ORDER
    said = body.on_chain_order_type
    if said not in (None, kind, OnChainOrderType(found.order_type.name)):
        raise InvalidInput(field="onChainOrderType", expected=f"{kind.value}, as the order says", got=said)
    return kind


def _document(body: SubmitBody, found: IdentifiedDelta, *, by_key: bool) -> DeltaDocument:
    """Make the document of a submitted order to be stored, with an empty signature."""
    include, exclude = body.include_agents or (), body.exclude_agents or ()
    for name, agents in (("includeAgents", include), ("excludeAgents", exclude)):
        if len(agents) > limits.VENUE_ORDER_AGENTS_MAX:
            raise InvalidInput(
                field=name, expected=f"at most {limits.VENUE_ORDER_AGENTS_MAX} names", got=len(agents)
            )
    for agent in include:
        if agent in exclude:
            raise InvalidInput(field="excludeAgents", expected="none of includeAgents", got=agent)
    referrer = b""
    if body.referrer_address is not None:
        referrer = parse_address(body.referrer_address, "referrerAddress")
    return DeltaDocument(
        order_type=found.order_type.name,
        order=order_json(found.order_type.name, found.order),
        signature=b"",
        partially_fillable=body.partially_fillable,
        include_agents=include,
        exclude_agents=exclude,
        referrer=referrer,
        by_key=by_key,
    )


def _check_permit(body: SubmitBody, order: SettledOrder, src: ListedToken, delta: bytes) -> None:
    """Raise an error if an order lacks a required permit, or has a malformed or disallowed permit."""
    form = permit_form(order.permit, "order.permit")
    needs_approval = body.type is OrderType.LIMIT or isinstance(order, _TWAPS)
    is_permit_only = src.listed is not None and src.listed.permit_only
    if isinstance(order, ProductiveOrder):
        is_permit_only = False  # the contract takes the vault's shares, not the source token
    if is_permit_only and (needs_approval or form is PermitForm.NONE):
        only = "; its limit orders and TWAP are not served" if needs_approval else ""
        raise PermitRequired(f"{src.symbol} takes permits only{only}", field="order.permit")
    if form is PermitForm.NONE:
        return
    fault = ""
    if needs_approval:
        fault = "limit orders and TWAP need an on-chain approval"
    elif src.listed is None:
        fault = "the native token is deposited"
    elif form is PermitForm.PERMIT2_TRANSFER and body.partially_fillable:
        fault = "a Permit2 transfer is used up by the first part"
    if fault:
        raise InvalidInput(field="order.permit", expected=f"0x: {fault}", got=f"{len(order.permit)} bytes")
    check_words(order.permit, order.owner, delta)


def _partner(body: SubmitBody, terms: OrderTerms, rules: Rules) -> str:
    if rules.strict_partner and not (body.partner or rules.default_partner):
        raise InvalidInput("missing", field="partner")
    paid, default = terms.fee, rules.default_partner
    return partner_of_order(body.partner, default, to_checksum(paid.partner), paid.fee_bps, rules.partners)


def _check_deadline(order: SettledOrder, now_s: int) -> None:
    check_unix_seconds("order.deadline", order.deadline)
    if order.deadline <= now_s:
        raise OrderExpired(field="order.deadline", expected=f"a time after {now_s}", got=order.deadline)
    if isinstance(order, _TWAPS):
        earliest = now_s + order.interval * order.num_slices
        if order.deadline < earliest:
            raise TwapDeadlineTooShort(
                field="order.deadline", expected=f"at least {earliest}", got=order.deadline
            )


# --- With the chain -----------------------------------------------------------------------------------


def submission_calls(found: Submission, delta: bytes, permit2: bytes) -> dict[str, EthCall]:
    """Build the calls to the chain that check a submitted order: name of the check -> call.

    Args:
        delta: the Delta contract, 20 bytes.
        permit2: the Permit2 contract that Delta uses; empty if the order's permit does not need it.
    """
    terms, order_hash = found.terms, found.order_hash
    calls = {"state": EthCall(delta, order_state(terms.owner, terms.nonce, order_hash))}
    signing = signature_call(found.signature, delta)
    if signing is not None:
        calls["signature"] = signing
    if isinstance(found.order, ProductiveOrder):
        calls |= vault_calls(found.order)
    if found.is_native:
        calls["balance"] = EthCall(delta, deposits(terms.owner))
    else:
        calls["balance"] = EthCall(terms.held_token, balance_of(terms.owner))
        calls |= taking_calls(_taking(found, delta, permit2))
    return calls


def accepted(
    found: Submission, answers: Answers, header: Header, delta: bytes, permit2: bytes, *, has_code: bool
) -> OrderStatus:
    """Check a submitted order against the chain's answers; return the order's first status.

    Args:
        answers: answers to the calls of `submission_calls`, at the block of `header`.
        has_code: whether the owner is a contract.

    Returns:
        PENDING, or AWAITING_SIGNATURE if the owner's contract may still sign.

    Raises:
        InvalidSignature, NonceUsed, OrderAlreadySettled, InsufficientAllowance, InsufficientBalance,
            InvalidProductiveOrderParams: a check fails; see spec 1.25.
        ServiceUnavailable: a contract does not answer.
    """
    state = signature_state(found.signature, answers.get("signature"), has_code=has_code)
    _check_nonce(found, answers)
    part, taking = source_of(found.order, found.first), _taking(found, delta, permit2)
    if isinstance(found.order, ProductiveOrder):
        # The owner signs a maximum of shares; only the shares that the vault takes now have to be approved.
        part = shares_needed(found.order, answers)
        taking = replace(taking, whole=part)
    # The allowance before the balance: the error names the first fault (module docstring, 11 and 12).
    teller = "vault" if isinstance(found.order, ProductiveOrder) else "source token"
    has = _number(answers, "balance", "Delta contract" if found.is_native else teller)
    if not found.is_native:
        check_taking(taking, answers, now_s=header.time_s, has_part=has >= taking.part)
    if has < part:
        if found.is_native:
            call = f"depositNativeAndPreSign({to_hex(found.order_hash)})"
            how = f"{call} of {to_checksum(delta)} with {part - has} wei more"
            expected = f"at least {part} wei deposited by the owner: {how}"
            raise InsufficientBalance(field="deposit", expected=expected, got=has)
        expected = f"at least {part} of {taking.held_name}"
        raise InsufficientBalance(field="order.owner", expected=expected, got=has)
    return OrderStatus.PENDING if state is SignatureState.SIGNED else OrderStatus.AWAITING_SIGNATURE


def balance_in(answers: Answers) -> int:
    """Owner's balance of the sold token, or its deposit, raw units; `accepted` has judged the answer."""
    return _number(answers, "balance", "source token")


def _check_nonce(found: Submission, answers: Answers) -> None:
    try:
        answer = _answer(answers, "state", "Delta contract")
        state = decode_order_state(answer, found.order_hash, is_scheduled=is_scheduled(found.order))
    except InvalidInput:
        raise _mute("Delta contract") from None
    if state.is_closed or state.done:
        raise OrderAlreadySettled("by the chain, in whole or in part", field="order")
    if state.is_others or state.is_used:
        raise NonceUsed(field="order.nonce", expected="a nonce of no order on chain", got=found.terms.nonce)


def _taking(found: Submission, delta: bytes, permit2: bytes) -> Taking:
    """Describe what the contract takes from the owner: the source tokens, or all signed shares of a vault."""
    terms, is_of_vault = found.terms, isinstance(found.order, ProductiveOrder)
    return Taking(
        permit=terms.permit,
        token=terms.held_token,
        owner=terms.owner,
        spender=delta,
        permit2=permit2,
        whole=terms.held_total,
        part=terms.held_total if is_of_vault else found.first.src_amount,
        deadline=terms.deadline,
        held_name="the vault's shares" if is_of_vault else "srcToken",
    )


def _number(answers: Answers, name: str, who: str) -> int:
    return int.from_bytes(_answer(answers, name, who)[:WORD_BYTES], "big")


def _answer(answers: Answers, name: str, who: str) -> bytes:
    answer = answers[name]
    if isinstance(answer, Exception) or len(answer) < WORD_BYTES:
        raise _mute(who)
    return answer


def _mute(who: str) -> ServiceUnavailable:
    return ServiceUnavailable(f"the {who} does not answer")
