"""Partners, their tiers, the fee of a request, and the partner name of an order: pure rules.

A request names a partner and may bring `partnerFeeBps`. The fee of a registered partner is its registered fee
plus `partnerFeeBps`. A request with an unregistered partner has the fee of a request without a partner:

    with `partnerFeeBps`   that fee, to the request's `partnerAddress`, or to the venue without an address
    without it             1 bps, to the venue, or to the `partnerAddress` if the request takes surplus

Orders and answers show the partner's name all the same. A tier bounds its partners' requests; a request
beyond the tier is `Partner not allowed`.

Source: spec 1.12.15 to 1.12.17, 1.25.54, 1.27.3.
Choice: A registered fee and `partnerFeeBps` add up. A sum above 200 bps, or above the tier's bound, is
    `Partner not allowed`. An unregistered partner pays as anon and keeps its name wherever it is shown.
Choice: An order without `partner` counts as the signed fee's partner's, else as `anon`'s; with
    `strict_partner` it is refused. A partner name that contradicts the signed fee is refused.
"""

from collections.abc import Mapping

import msgspec

from .. import limits
from ..errors import InvalidInput, PartnerNotAllowed

ANON = "anon"


class Tier(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Limits on the fees and surplus shares that the partners of one tier may request.

    Attributes:
        fee_bps_max: most basis points of registered and requested fee together, 0 to 200.
        takes_surplus: whether a request may give the partner a share of the surplus.
        uncapped_surplus: whether that share may exceed the usual cap of 1 % of the expected amount.
    """

    fee_bps_max: int = limits.PARTNER_FEE_BPS_MAX
    takes_surplus: bool = True
    uncapped_surplus: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.fee_bps_max <= limits.PARTNER_FEE_BPS_MAX:
            raise ValueError(f"fee_bps_max is 0 to {limits.PARTNER_FEE_BPS_MAX}, got {self.fee_bps_max}")


class RegisteredPartner(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A registered partner.

    Attributes:
        address: account that receives the fee.
        fee_bps: registered fee, basis points.
        tier: name of the tier that limits the partner's requests.
    """

    address: str
    fee_bps: int = 0
    tier: str = "default"

    def __post_init__(self) -> None:
        if not 0 <= self.fee_bps <= limits.PARTNER_FEE_BPS_MAX:
            raise ValueError(f"fee_bps is 0 to {limits.PARTNER_FEE_BPS_MAX}, got {self.fee_bps}")


DEFAULT_TIER = Tier()


class ResolvedFee(msgspec.Struct, frozen=True):
    """The fee of a request and its recipient.

    Attributes:
        partner: partner name that the request sends, registered or not; `anon` if it sends none.
        address: account that receives the fee: a registered partner's own, or the `partnerAddress` of the
            request; empty if the venue itself is paid.
        fee_bps: registered and requested fee together, basis points; ANON_FEE_BPS if no registered partner is
            named and the request asks for no fee.
    """

    partner: str
    address: str
    fee_bps: int


def resolve_fee(
    partner: str | None,
    requested_bps: int | None,
    partners: Mapping[str, RegisteredPartner],
    tiers: Mapping[str, Tier],
    *,
    partner_address: str = "",
    takes_surplus: bool = False,
    caps_surplus: bool = True,
) -> ResolvedFee:
    """Determine the fee of a request and the account that receives it.

    Args:
        partner: the request's `partner`; None and empty mean anon; an unregistered partner pays as anon does.
        requested_bps: the request's `partnerFeeBps`; None for none.
        partners, tiers: as configured; a tier named `default` replaces the built-in one.
        partner_address: the request's `partnerAddress`, paid for an unregistered partner; empty for none.
        takes_surplus, caps_surplus: the request's surplus flags.

    Raises:
        InvalidInput: requested_bps outside 0 to 200; a name with unprintable characters; a partner_address
            that is not the named registered partner's, or that belongs to another registered partner.
        PartnerNotAllowed: registered and requested fee together exceed 200 bps or the tier's bound, or the
            tier forbids the surplus flags.

    Choice: An anon request pays 1 bps to the venue unless it asks for its own fee. If it takes a share
        of the surplus, its `partnerAddress` gets the 1 bps too, as an order has one recipient of fees. No
        tier bounds the 1 bps. A fee without an address goes to the venue.
    Choice: A registered partner is paid at its own address; another `partnerAddress` beside it is refused.
    """
    name = _shown_name(partner)
    registered = registered_partner(name, partners)
    tier = tiers.get(registered.tier if registered else "default", DEFAULT_TIER)
    own_bps = requested_bps or 0  # a requested fee of 0 counts as none
    if not limits.PARTNER_FEE_BPS_MIN <= own_bps <= limits.PARTNER_FEE_BPS_MAX:
        raise InvalidInput(
            field="partnerFeeBps", expected=f"0 to {limits.PARTNER_FEE_BPS_MAX}", got=requested_bps
        )
    if registered:
        if partner_address and not _is_same(partner_address, registered.address):
            raise InvalidInput(
                field="partnerAddress",
                expected=f"none, or {registered.address}, where partner {name!r} is paid",
                got=partner_address,
            )
        fee_bps, address = registered.fee_bps + own_bps, registered.address
    else:
        fee_bps = own_bps or limits.ANON_FEE_BPS
        address = partner_address if own_bps or takes_surplus else ""
    # The 1 bps of a request with no registered partner and no fee of its own is bounded by no tier.
    if (registered or own_bps) and fee_bps > tier.fee_bps_max:
        raise PartnerNotAllowed(
            field="partnerFeeBps", expected=f"a sum of at most {tier.fee_bps_max}", got=fee_bps
        )
    if takes_surplus and not tier.takes_surplus:
        raise PartnerNotAllowed("its tier takes no surplus", field="takeSurplus")
    if takes_surplus and not caps_surplus and not tier.uncapped_surplus:
        raise PartnerNotAllowed("its tier takes capped surplus only", field="capSurplus")
    # `partner_of_order` would refuse the signed order: its fee belongs to another partner than it names.
    paid = paid_partners(address, fee_bps, partners)
    if name not in (ANON, *partners) and paid:
        raise InvalidInput(
            field="partnerAddress",
            expected=f"the address of no registered partner beside partner {name!r}",
            got=f"that of {paid[0]!r}",
        )
    return ResolvedFee(name, address, fee_bps)


def registered_partner(name: str, partners: Mapping[str, RegisteredPartner]) -> RegisteredPartner | None:
    """Find the registered partner whose terms apply to a partner name.

    The result is the named partner, else the partner `anon`, else None.
    """
    return partners.get(name) or partners.get(ANON)


def paid_partners(address: str, fee_bps: int, partners: Mapping[str, RegisteredPartner]) -> list[str]:
    """List the registered partners that a signed fee may belong to, the highest registered fee first.

    Args:
        address: the paid account; zero or empty for none.
        fee_bps: the signed fee, basis points; partners with a higher registered fee are left out.
    """
    paid = [
        (-registered.fee_bps, name)
        for name, registered in partners.items()
        if name != ANON and _is_same(registered.address, address) and registered.fee_bps <= fee_bps
    ]
    return [name for _, name in sorted(paid)]


def partner_of_order(
    named: str | None, default: str, address: str, fee_bps: int, partners: Mapping[str, RegisteredPartner]
) -> str:
    """Determine the partner name under which a signed order is stored.

    Args:
        named: `partner` of the submission.
        default: default partner of the submission's API key; empty for none.
        address, fee_bps: recipient and fee that the order signs.

    Raises:
        InvalidInput: the name contradicts the signed fee, or has unprintable characters.

    Choice: An order that pays a registered partner its fee bears that partner's name and no other. An unnamed
        order, or `anon`, bears the name of the partner that its fee address belongs to: the API key's default
        partner first, then the partner with the highest fee.
    """
    name, paid = _shown_name(named), paid_partners(address, fee_bps, partners)
    if name == ANON:
        return default if default in paid else next(iter(paid), ANON)
    if name in paid or not (paid or name in partners):
        return name
    whose = " or ".join(map(repr, paid)) if paid else "no registered partner"
    raise InvalidInput(field="partner", expected=f"the partner of the signed fee, {whose}", got=name)


def _shown_name(partner: str | None) -> str:
    """Partner name as orders and answers show it: the name in the request, or `anon` without one."""
    if not partner:
        return ANON
    if not partner.isprintable():
        raise InvalidInput(field="partner", expected="printable characters", got=partner)
    return partner


def _is_same(address: str, other: str) -> bool:
    return address.lower() == other.lower()
