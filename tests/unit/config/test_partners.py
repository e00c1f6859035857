"""Fees of requests with partners: a table of examples for one rule."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.config.errors import InvalidInput, PartnerNotAllowed
from cambist.config.sections.partners import (
    RegisteredPartner,
    ResolvedFee,
    Tier,
    partner_of_order,
    resolve_fee,
)

WALLET, DESK, OURS, THEIRS, ZERO = ("0x" + digit * 40 for digit in "abcd0")

PARTNERS = {
    "wallet": RegisteredPartner(address=WALLET, fee_bps=50),
    "free": RegisteredPartner(address=WALLET),
    "desk": RegisteredPartner(address=DESK, fee_bps=10, tier="small"),
    "locked": RegisteredPartner(address=DESK, tier="locked"),
}
TIERS = {
    "small": Tier(fee_bps_max=25, uncapped_surplus=False),
    "locked": Tier(fee_bps_max=0, takes_surplus=False),
}

FEES = [
    # (example, partner, requested bps, partner address, what is paid)
    ("no partner at all", None, None, "", ResolvedFee("anon", "", 1)),
    ("empty partner", "", None, "", ResolvedFee("anon", "", 1)),
    ("anon by name", "anon", None, "", ResolvedFee("anon", "", 1)),
    ("an unknown partner pays as anon", "stranger", None, "", ResolvedFee("stranger", "", 1)),
    ("an unknown partner has an address", "stranger", 30, THEIRS, ResolvedFee("stranger", THEIRS, 30)),
    ("names are exact", "Wallet", None, "", ResolvedFee("Wallet", "", 1)),
    ("anon asks for zero, still 1 bps", None, 0, "", ResolvedFee("anon", "", 1)),
    ("anon asks for a fee of its own", None, 30, THEIRS, ResolvedFee("anon", THEIRS, 30)),
    ("anon asks for the most there is", None, 200, THEIRS, ResolvedFee("anon", THEIRS, 200)),
    ("an address alone is paid nothing", None, None, THEIRS, ResolvedFee("anon", "", 1)),
    ("an address and zero are paid nothing", None, 0, THEIRS, ResolvedFee("anon", "", 1)),
    ("registered fee only", "wallet", None, "", ResolvedFee("wallet", WALLET, 50)),
    ("zero keeps the registered fee", "wallet", 0, "", ResolvedFee("wallet", WALLET, 50)),
    ("fees stack", "wallet", 25, "", ResolvedFee("wallet", WALLET, 75)),
    ("fees stack up to 200", "wallet", 150, "", ResolvedFee("wallet", WALLET, 200)),
    ("the registered address may be said", "wallet", 25, WALLET, ResolvedFee("wallet", WALLET, 75)),
    ("a registered partner may cost nothing", "free", None, "", ResolvedFee("free", WALLET, 0)),
    ("a tier's bound is reached", "desk", 15, "", ResolvedFee("desk", DESK, 25)),
    ("a locked tier pays what it registered", "locked", 0, "", ResolvedFee("locked", DESK, 0)),
]


@pytest.mark.parametrize(
    ("partner", "requested", "address", "paid"), [row[1:] for row in FEES], ids=[row[0] for row in FEES]
)
def test_fee(partner: str | None, requested: int | None, address: str, paid: ResolvedFee) -> None:
    assert resolve_fee(partner, requested, PARTNERS, TIERS, partner_address=address) == paid


@pytest.mark.parametrize("name", [None, "", "anon", "stranger"])
def test_anon_may_be_registered_and_then_serves_every_stranger(name: str | None) -> None:
    partners = {"anon": RegisteredPartner(address=OURS, fee_bps=5)}
    assert resolve_fee(name, None, partners, {}) == ResolvedFee(name or "anon", OURS, 5)


@pytest.mark.parametrize(
    ("partner", "address", "said"),
    [
        ("wallet", THEIRS, f"partnerAddress: expected none, or {WALLET}, where partner 'wallet' is paid"),
        ("desk", WALLET, f"partnerAddress: expected none, or {DESK}, where partner 'desk' is paid"),
        ("stranger", DESK, "no registered partner beside partner 'stranger', got \"that of 'desk'\""),
        ("a\nb", "", "partner: expected printable characters"),
        ("a\0", "", "partner: expected printable characters"),
    ],
)
def test_what_contradicts_a_partner_is_refused(partner: str, address: str, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        resolve_fee(partner, 10, PARTNERS, TIERS, partner_address=address)
    assert said in caught.value.detail


KEPT = [
    # (example, name, default of the key, who is paid, basis points, the name that is kept)
    ("nobody is named, the venue is paid", None, "", ZERO, 1, "anon"),
    ("nobody is named, a stranger is paid", None, "", THEIRS, 50, "anon"),
    ("nobody is named, a partner is paid", None, "", DESK, 10, "desk"),
    ("anon is nobody", "anon", "", DESK, 12, "desk"),
    ("less than the registered fee is not the partner's", None, "", DESK, 9, "locked"),
    ("of two partners the one with the higher fee", None, "", WALLET, 50, "wallet"),
    ("of two partners the default of the key", None, "free", WALLET, 50, "free"),
    ("a default that is not paid is nobody's", None, "desk", ZERO, 1, "anon"),
    ("a registered partner is paid", "wallet", "", WALLET.upper().replace("X", "x"), 75, "wallet"),
    ("an unknown partner keeps its name", "stranger", "", ZERO, 1, "stranger"),
    ("an unknown partner is paid", "stranger", "desk", THEIRS, 100, "stranger"),
]


@pytest.mark.parametrize(
    ("named", "default", "address", "fee_bps", "kept"),
    [row[1:] for row in KEPT],
    ids=[row[0] for row in KEPT],
)
def test_the_name_of_a_signed_order(
    named: str | None, default: str, address: str, fee_bps: int, kept: str
) -> None:
    assert partner_of_order(named, default, address, fee_bps, PARTNERS) == kept


@pytest.mark.parametrize(
    ("named", "address", "fee_bps", "whose"),
    [
        ("wallet", ZERO, 1, "no registered partner"),
        ("wallet", DESK, 200, "'desk' or 'locked'"),
        ("wallet", WALLET, 49, "'free'"),
        ("stranger", WALLET, 50, "'wallet' or 'free'"),
    ],
)
def test_a_name_that_the_signed_fee_contradicts(named: str, address: str, fee_bps: int, whose: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        partner_of_order(named, "", address, fee_bps, PARTNERS)
    assert f"partner: expected the partner of the signed fee, {whose}, got '{named}'" in caught.value.detail


@given(
    named=st.sampled_from([None, "anon", "stranger", *PARTNERS]),
    asked=st.integers(0, 200),
    address=st.sampled_from(["", WALLET, DESK, THEIRS]),
    surplus=st.booleans(),
)
def test_what_is_built_for_a_partner_may_be_submitted_under_its_name(
    named: str | None, asked: int, address: str, surplus: bool
) -> None:
    try:
        fee = resolve_fee(named, asked, PARTNERS, {}, partner_address=address, takes_surplus=surplus)
    except (InvalidInput, PartnerNotAllowed):
        return
    kept = partner_of_order(named, "", fee.address or ZERO, fee.fee_bps, PARTNERS)
    assert kept == fee.partner or fee.partner == "anon"


REFUSED: list[tuple[str, str | None, int | None, dict[str, bool], str]] = [
    ("one above 200", "wallet", 151, {}, "partnerFeeBps: expected a sum of at most 200, got 201"),
    ("one above the tier", "desk", 16, {}, "partnerFeeBps: expected a sum of at most 25, got 26"),
    ("anything on a locked tier", "locked", 1, {}, "partnerFeeBps: expected a sum of at most 0, got 1"),
    (
        "surplus when locked",
        "locked",
        None,
        {"takes_surplus": True},
        "takeSurplus: its tier takes no surplus",
    ),
    (
        "uncapped surplus on a small tier",
        "desk",
        None,
        {"takes_surplus": True, "caps_surplus": False},
        "capSurplus: its tier takes capped surplus only",
    ),
]


@pytest.mark.parametrize(
    ("partner", "requested", "flags", "said"), [row[1:] for row in REFUSED], ids=[row[0] for row in REFUSED]
)
def test_not_allowed(partner: str, requested: int | None, flags: dict[str, Any], said: str) -> None:
    with pytest.raises(PartnerNotAllowed) as caught:
        resolve_fee(partner, requested, PARTNERS, TIERS, **flags)
    assert caught.value.status == 422
    assert caught.value.detail == f"Partner not allowed: {said}"


@pytest.mark.parametrize(
    ("partner", "flags"),
    [
        pytest.param("wallet", {"takes_surplus": True, "caps_surplus": False}, id="default tier, uncapped"),
        pytest.param("desk", {"takes_surplus": True, "caps_surplus": True}, id="small tier, capped"),
        pytest.param("desk", {"takes_surplus": False, "caps_surplus": False}, id="a cap on nothing"),
        pytest.param("locked", {"takes_surplus": False, "caps_surplus": False}, id="locked, not asking"),
        pytest.param(None, {"takes_surplus": True, "caps_surplus": False}, id="anon"),
    ],
)
def test_surplus_flags_that_a_tier_permits(partner: str | None, flags: dict[str, Any]) -> None:
    fee = resolve_fee(partner, None, PARTNERS, TIERS, **flags)
    assert fee == resolve_fee(partner, None, PARTNERS, TIERS)


@pytest.mark.parametrize("requested", [-1, 201, 10_000, 2**300])
@pytest.mark.parametrize("partner", [None, "free", "wallet"])
def test_a_fee_out_of_range_is_the_requests_fault(partner: str | None, requested: int) -> None:
    with pytest.raises(InvalidInput, match="partnerFeeBps: expected 0 to 200") as caught:
        resolve_fee(partner, requested, PARTNERS, TIERS)
    assert caught.value.status == 400


def test_a_tier_called_default_replaces_the_built_in_one() -> None:
    tiers = {"default": Tier(fee_bps_max=60)}
    assert resolve_fee("wallet", 10, PARTNERS, tiers).fee_bps == 60
    assert resolve_fee(None, 60, PARTNERS, tiers).fee_bps == 60
    for partner, requested in (("wallet", 11), (None, 61)):
        with pytest.raises(PartnerNotAllowed):
            resolve_fee(partner, requested, PARTNERS, tiers)


@pytest.mark.parametrize("bps", [-1, 201])
def test_partners_and_tiers_stay_within_0_to_200(bps: int) -> None:
    with pytest.raises(ValueError, match=f"fee_bps is 0 to 200, got {bps}"):
        RegisteredPartner(address=WALLET, fee_bps=bps)
    with pytest.raises(ValueError, match=f"fee_bps_max is 0 to 200, got {bps}"):
        Tier(fee_bps_max=bps)


def test_a_surplus_goes_to_the_address_that_was_named() -> None:
    paid = resolve_fee(None, None, {}, {}, partner_address=THEIRS, takes_surplus=True)
    assert paid == ResolvedFee("anon", THEIRS, 1)


def test_a_tier_without_fees_still_serves_anon() -> None:
    tiers = {"default": Tier(fee_bps_max=0)}
    assert resolve_fee(None, None, {}, tiers).fee_bps == 1
    with pytest.raises(PartnerNotAllowed):
        resolve_fee(None, 1, {}, tiers)
