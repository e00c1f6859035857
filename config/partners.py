"""Partners, their tiers, and the fee that a request pays: one pure rule.

A request names a partner and may bring `partnerFeeBps`. What it pays is the partner's registered fee plus
that; a partner that is not registered counts as `anon`, which pays 1 bps to the venue. A tier says what its
partners may ask for; more is `Partner not allowed`.

Source: document 1, GET /v2/quote (`partner`, `partnerFeeBps`), Limits, "Partner not allowed"; choices.md 13.
"""

from collections.abc import Mapping

import msgspec

from . import limits
from .errors import InvalidInput, PartnerNotAllowed

ANON = "anon"


class Tier(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the partners of a tier may ask for.

    Attributes:
        fee_bps_max: most basis points of registered and requested fee together, 0 to 200.
        takes_surplus: whether a request may give the partner a share of the surplus.
        uncapped_surplus: whether that share may go uncapped.
    """

    fee_bps_max: int = limits.PARTNER_FEE_BPS_MAX
    takes_surplus: bool = True
    uncapped_surplus: bool = True

    def __post_init__(self) -> None:
        if not 0 <= self.fee_bps_max <= limits.PARTNER_FEE_BPS_MAX:
            raise ValueError(f"fee_bps_max is 0 to {limits.PARTNER_FEE_BPS_MAX}, got {self.fee_bps_max}")


class Partner(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One registered partner.

    Attributes:
        address: who is paid.
        fee_bps: registered fee, basis points.
        tier: name of its tier.
    """

    address: str
    fee_bps: int = 0
    tier: str = "default"

    def __post_init__(self) -> None:
        if not 0 <= self.fee_bps <= limits.PARTNER_FEE_BPS_MAX:
            raise ValueError(f"fee_bps is 0 to {limits.PARTNER_FEE_BPS_MAX}, got {self.fee_bps}")


DEFAULT_TIER = Tier()


class ResolvedFee(msgspec.Struct, frozen=True):
    """What a request pays, and to whom.

    Attributes:
        partner: its name; `anon` for one that is not registered.
        address: of the partner; empty where the venue itself is paid.
        fee_bps: registered and requested fee together.
    """

    partner: str
    address: str
    fee_bps: int


def resolve_fee(
    partner: str | None,
    requested_bps: int | None,
    partners: Mapping[str, Partner],
    tiers: Mapping[str, Tier],
    *,
    partner_address: str = "",
    takes_surplus: bool = False,
    caps_surplus: bool = True,
) -> ResolvedFee:
    """The fee of a request.

    Args:
        partner: its `partner`; None, empty or unknown counts as anon.
        requested_bps: its `partnerFeeBps`; None for none.
        partners, tiers: as configured; a tier named `default` replaces the built-in one.
        partner_address: its `partnerAddress`, paid where the partner has no address of its own.
        takes_surplus, caps_surplus: its surplus flags.

    Raises:
        InvalidInput: requested_bps outside 0 to 200.
        PartnerNotAllowed: the sum is above 200 or the tier's bound, or the tier forbids the surplus flags.

    Choice: an anon request pays its 1 bps, to the venue, only where it asks for no fee of its own; else the
    requested fee stands alone, since an order has one recipient of fees. Tiers bound what is asked for, not
    the venue's own 1 bps. A fee or surplus asked for without any address goes to the venue.
    """
    name = partner if partner and partner in partners else ANON
    registered = partners.get(name)
    tier = tiers.get(registered.tier if registered else "default", DEFAULT_TIER)
    asked = requested_bps or 0
    if not limits.PARTNER_FEE_BPS_MIN <= asked <= limits.PARTNER_FEE_BPS_MAX:
        raise InvalidInput(
            field="partnerFeeBps", expected=f"0 to {limits.PARTNER_FEE_BPS_MAX}", got=requested_bps
        )
    if registered:
        fee_bps, address = registered.fee_bps + asked, registered.address
    else:
        fee_bps = asked or limits.ANON_FEE_BPS
        address = partner_address if asked or takes_surplus else ""
    if (registered or asked) and fee_bps > tier.fee_bps_max:
        raise PartnerNotAllowed(
            field="partnerFeeBps", expected=f"a sum of at most {tier.fee_bps_max}", got=fee_bps
        )
    if takes_surplus and not tier.takes_surplus:
        raise PartnerNotAllowed("its tier takes no surplus", field="takeSurplus")
    if takes_surplus and not caps_surplus and not tier.uncapped_surplus:
        raise PartnerNotAllowed("its tier takes capped surplus only", field="capSurplus")
    return ResolvedFee(name, address, fee_bps)
