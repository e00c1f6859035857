"""Parses a posted OTC order and checks the rules that need no read of the chain. Pure.

    identify   chain's domain + body -> the signed struct and its hash
    checked    struct and hash -> OtcTerms, after all rules that need no chain

The first fault in this order is the reported fault:

     1  chain: served, with an RFQ contract (by the caller)
     2  members and their types, then their format, in the order of spec 2.3: nonceAndMeta, makerAsset,
        takerAsset, makerAmount, takerAmount, maker, taker
     3  a post of a stored order is answered with the stored order, before all further checks (by the caller)
     4  assets: ERC-20 tokens, not the native one; two different ones
     5  amounts: above 0
     6  expiry: 0 for never, or a time in the future
     7  maker: an account; taker: no contract of the venue that cannot fill the order
     8  permit: its length, its owner and its spender
     9  signature: its format; signed by the maker's key, or left to the maker's contract
    10  number of the maker's orders that may still be filled (by the caller)
    11  reads of the chain (`submission`): the maker is a contract if its key has not signed; the assets; the
        unfilled amount; the contract's acceptance of the signature

Source: spec 2.3; interop.md 1; choices.md#fees-and-partners, choices.md#otc-orders.
Choice: Any uint256 is accepted as nonceAndMeta; answers show it as a decimal number.
Choice: An OTC order may be of any ERC-20 token, listed or not.
Choice: An expiry lies after now and before the year 10000; 0 means never and sorts last. The zero
    address and the native placeholder are no maker and no token of an order. Firm quotes refuse expiry 0.
Choice: An amount may be any uint256. A partial fill multiplies two amounts in the contract, and reverts there
    if the product has more than 256 bits.
Choice: A permit of another length than 224 or 256 bytes is refused: the contract would ignore it.
Choice: An order whose taker is a contract of the venue is refused, since that contract fills no order as its
    taker. The executor fills through the Router, for the user in the lower 160 bits of nonceAndMeta alone.
Choice: The type of an OTC order depends on `taker` alone; `takerFromMeta` is only reported.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct

from ....codecs.amounts import parse_amount
from ....codecs.contracts.permit import RFQ_FORMS
from ....codecs.eip712_orders.nonce_and_meta import taker_from_meta
from ....codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder
from ....codecs.eip712_orders.signing_names import NamedDomain, OrderDigests, rfq_others
from ....codecs.iso_time import check_unix_seconds
from ....codecs.messages.otc_messages import OtcOrderBody
from ....codecs.messages.vocabulary import OtcType
from ....codecs.trading_token import NATIVE_TOKEN, check_account
from ....config.errors import InvalidInput, OrderExpired
from ....crypto.addresses import ZERO_ADDRESS, parse_address, to_checksum
from ....crypto.eip712 import signing_digest
from ....crypto.eip1271 import unwrapped
from ....crypto.hexadecimal import parse_hex
from ....crypto.signatures import parse_signature, to_65
from ..served.signed_by import OwnerSignature, read_signature
from ..served.token_permits import check_named

_PERMIT = "permitMakerAsset"
_PERMIT_LENGTHS = frozenset(form.value for form in RFQ_FORMS)
_COMPACT_BYTES = 64


class OtcDomain(Struct, frozen=True):
    """The EIP-712 domain of one chain's OTC orders.

    Attributes:
        named: the RFQ contract's domain.
        separator: separator of the domain `named`, 32 bytes.
        others: domains that signers may use by mistake; an error names the wrong domain.
        executor: contract that fills for users, 20 bytes; empty if the chain has none.
        never_takers: contracts of the venue that never fill an order as its taker.
    """

    named: NamedDomain
    separator: bytes
    others: tuple[NamedDomain, ...]
    executor: bytes = b""
    never_takers: frozenset[bytes] = frozenset()

    @property
    def contract(self) -> bytes:
        """Address of the RFQ contract, 20 bytes."""
        return self.named.contract


OtcDomains = Mapping[int, OtcDomain]
"""Chain id -> EIP-712 domain of the chain's OTC orders."""


class IdentifiedOtc(Struct, frozen=True):
    """The RFQ order in a posted body, with its EIP-712 hash.

    Attributes:
        order_hash: digest that the maker signs, 32 bytes.
        signing: struct hash of the order, its correct EIP-712 domain, and other domains, for one of which the
            maker may have signed by mistake.
    """

    order: RfqOrder
    order_hash: bytes
    signing: OrderDigests


class OtcTerms(Struct, frozen=True):
    """A posted OTC order that has passed all checks that need no read of the chain.

    Attributes:
        type: P2P if the order names a taker, else LIMIT.
        taker_from_meta: the taker in `nonceAndMeta`, 20 bytes.
        signature: posted signature; `signature.is_by_key` tells whether the maker's key made the signature.
            Otherwise a call to the maker's contract has to confirm the signature.
        shown_signature: signature as stored and returned by the API.
        permit: bytes of the posted permit; None if the body had no permit member.
    """

    order: RfqOrder
    order_hash: bytes
    type: OtcType
    taker_from_meta: bytes
    signature: OwnerSignature
    shown_signature: bytes
    permit: bytes | None


def otc_domain(
    here: NamedDomain,
    served: Iterable[NamedDomain] = (),
    *,
    executor: bytes = b"",
    never_takers: Iterable[bytes] = (),
) -> OtcDomain:
    """Build the EIP-712 domain of a chain's OTC orders.

    Args:
        here: domain of the chain's RFQ contract.
        served: RFQ domains of all served chains; the error for a signature under another chain's domain names
            that chain's domain.
        executor: contract that fills for users, 20 bytes; empty if the chain has none.
        never_takers: contracts that never fill an order as its taker; empty for those that a chain lacks.
    """
    never = frozenset(filter(None, never_takers))
    return OtcDomain(here, here.separator, rfq_others(here, served), executor, never)


def identify(body: OtcOrderBody, domain: OtcDomain, prefix: str = "") -> IdentifiedOtc:
    """Parse a posted body into its RFQ order, and compute the order's EIP-712 hash.

    Args:
        prefix: text before the names of members in errors, for an order nested in another document.

    Raises:
        InvalidInput: a member is malformed.
    """
    order = RfqOrder(
        nonce_and_meta=parse_amount(body.nonce_and_meta, f"{prefix}nonceAndMeta"),
        expiry=body.expiry,
        maker_asset=parse_address(body.maker_asset, f"{prefix}makerAsset"),
        taker_asset=parse_address(body.taker_asset, f"{prefix}takerAsset"),
        maker_amount=parse_amount(body.maker_amount, f"{prefix}makerAmount"),
        taker_amount=parse_amount(body.taker_amount, f"{prefix}takerAmount"),
        maker=parse_address(body.maker, f"{prefix}maker"),
        taker=parse_address(body.taker, f"{prefix}taker"),
    )
    struct_hash = RFQ_ORDER.compiled.hash_struct(order)
    signing = OrderDigests(struct_hash, domain.named, domain.others)
    return IdentifiedOtc(order, signing_digest(domain.separator, struct_hash), signing)


def checked(
    body: OtcOrderBody, found: IdentifiedOtc, domains: OtcDomains, chain_id: int, now_ms: int
) -> OtcTerms:
    """Check a posted order against all rules that need no read of the chain.

    Args:
        domains: domains of the served chains, `chain_id` among them.

    Raises:
        InvalidInput: an asset, an amount, the expiry, the maker or the permit breaks a rule.
        OrderExpired: the expiry has passed.
        InvalidSignature: the signature is malformed, or the maker signed it for another domain.
    """
    order = found.order
    # In the order of the module's table: the client gets the first fault. The costly check of the signature
    # comes last.
    _check_assets(order)
    for field, amount in (("makerAmount", order.maker_amount), ("takerAmount", order.taker_amount)):
        if not amount:
            raise InvalidInput(field=field, expected="an amount above 0", got="0")
    now_s = now_ms // 1_000
    check_unix_seconds("expiry", order.expiry, "0 for never, or ")
    if 0 < order.expiry <= now_s:
        raise OrderExpired(field="expiry", expected=f"0 for never, or a time after {now_s}", got=order.expiry)
    check_account(order.maker, "maker")
    _check_taker(order, domains[chain_id])
    permit = _permit(body.permit_maker_asset, order.maker, domains[chain_id].contract)
    signature = read_signature(
        body.signature, found.order_hash, order.maker, is_awaited=True, signing=found.signing
    )
    return OtcTerms(
        order=order,
        order_hash=found.order_hash,
        type=OtcType.LIMIT if order.taker == ZERO_ADDRESS else OtcType.P2P,
        taker_from_meta=taker_from_meta(order.nonce_and_meta, order.maker, order.taker),
        signature=signature,
        shown_signature=_shown(parse_hex(body.signature, "signature"), signature),
        permit=permit,
    )


def _check_assets(order: RfqOrder) -> None:
    for field, asset in (("makerAsset", order.maker_asset), ("takerAsset", order.taker_asset)):
        if asset in (ZERO_ADDRESS, NATIVE_TOKEN):
            raise InvalidInput(
                "native asset must be wrapped first",
                field=field,
                expected="an ERC-20 token",
                got=to_checksum(asset),
            )
    if order.maker_asset == order.taker_asset:
        raise InvalidInput(
            field="takerAsset", expected="another token than makerAsset", got=to_checksum(order.taker_asset)
        )


def _check_taker(order: RfqOrder, domain: OtcDomain) -> None:
    """Refuse an order that only a contract of the venue may fill, if that contract can never fill it.

    Source: Rfq.sol (`open`: the caller is the taker), Router.sol and Delta.sol, which have the executor fill,
        RfqExecutor.sol (`checked`: an order for the executor is for the user in `nonceAndMeta`).
    """
    if order.taker in domain.never_takers:
        raise InvalidInput(
            "this contract of the venue fills no order as its taker",
            field="taker",
            expected="an account that fills at the RFQ contract itself, or zero for any",
            got=to_checksum(order.taker),
        )
    user = taker_from_meta(order.nonce_and_meta, order.maker, order.taker)
    if order.taker == domain.executor and user in (order.taker, ZERO_ADDRESS):
        raise InvalidInput(
            "the executor fills an order for itself for that user alone",
            field="taker",
            expected="a user in the lower 160 bits of nonceAndMeta, or another taker",
            got=to_checksum(order.taker),
        )


def _permit(text: str | None, maker: bytes, rfq: bytes) -> bytes | None:
    """Parse the permit in a posted body; None if the body has no permit member, empty bytes for `0x`.

    Raises:
        InvalidInput: the permit has a wrong length, or names another owner or spender.
    """
    if text is None:
        return None
    permit = parse_hex(text, _PERMIT)
    if not permit:
        return permit
    if len(permit) not in _PERMIT_LENGTHS:
        lengths = " or ".join(str(length) for length in sorted(_PERMIT_LENGTHS))
        raise InvalidInput(
            field=_PERMIT, expected=f"null, 0x, or {lengths} bytes", got=f"{len(permit)} bytes"
        )
    check_named(permit, maker, rfq, "maker", _PERMIT)
    return permit


def _shown(raw: bytes, signature: OwnerSignature) -> bytes:
    """Convert a posted signature to the form that is stored and returned by the API.

    A signature of 65 bytes by a key gets a v of 27 or 28, and of an ERC-6492 signature the inner one is left;
    all other signatures stay as posted.

    Args:
        raw: bytes of the posted signature.
        signature: the same signature, parsed.
    """
    if (wrapped := unwrapped(raw)) is not None:
        raw = wrapped.signature
    if not signature.is_by_key or len(raw) == _COMPACT_BYTES:
        return raw
    return to_65(*parse_signature(raw))
