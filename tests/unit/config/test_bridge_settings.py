"""Settings of bridges: defaults, shipped domains, and errors that name the setting."""

import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cambist.codecs.bridges.bridge_terms import BridgeKind
from cambist.config.chains import CCTP_DOMAINS, SHIPPED_CHAINS
from cambist.config.errors import ConfigError
from cambist.config.sections.bridges import BridgedToken
from cambist.config.settings import parse_settings
from cambist.engine.host.process.credentials import check_addresses
from cambist.engine.trade.delta.open_bridge_desk import bounds_of

HERE, THERE = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"
GOOD = f"""
[[tokens]]
chain_id = 1
address = "{HERE}"
symbol = "USDC"
decimals = 6
[[tokens]]
chain_id = 8453
address = "{THERE}"
symbol = "USDC"
decimals = 6
[bridges.across]
kind = "across"
url = "https://across.example/api"
[[bridges.across.tokens]]
chains = {{ 1 = "{HERE}", 8453 = "{THERE}" }}
[bridges.circle]
kind = "cctp"
tier = "fast"
url = "https://iris.example"
[[bridges.circle.tokens]]
chains = {{ 1 = "{HERE}", 8453 = "{THERE}" }}
"""


def test_what_is_not_said_has_a_default() -> None:
    settings = parse_settings(GOOD, {}, Path())
    check_addresses(settings)
    across, circle = settings.bridges["across"], settings.bridges["circle"]
    assert (across.margin_bps, across.fill_within_s, across.estimated_ms) == (1_000, 7_200, 30_000)
    assert (circle.finality, circle.estimated_ms) == (1_000, 30_000)
    slow = parse_settings(GOOD.replace('tier = "fast"', ""), {}, Path()).bridges["circle"]
    assert (slow.finality, slow.estimated_ms) == (2_000, 1_140_000)
    named = parse_settings(GOOD.replace('tier = "fast"', "estimated_s = 60"), {}, Path()).bridges["circle"]
    assert named.estimated_ms == 60_000


def test_a_transfer_is_late_after_three_times_its_usual_time_or_as_is_said() -> None:
    for tier, late_s in (('tier = "fast"', 300), ("", 3_420), ("late_s = 7.5", 7.5)):
        settings = parse_settings(GOOD.replace('tier = "fast"', tier), {}, Path())
        bounds = bounds_of(settings.bridges)
        assert bounds.delivery_ms == {BridgeKind.ACROSS: 300_000, BridgeKind.CCTP: round(1_000 * late_s)}
        assert bounds.refund_ms == 14_400_000
    said = parse_settings(GOOD.replace('kind = "across"', 'kind = "across"\nrefund_late_s = 60'), {}, Path())
    assert bounds_of(said.bridges).refund_ms == 60_000
    assert bounds_of({}).delivery_ms == dict.fromkeys(BridgeKind, 300_000)


def test_domains_ship_and_addresses_do_not() -> None:
    assert CCTP_DOMAINS == {1: 0, 10: 2, 42161: 3, 8453: 6, 137: 7, 43114: 1, 130: 10}
    for chain_id, chain in SHIPPED_CHAINS.items():
        assert chain.cctp_domain == CCTP_DOMAINS.get(chain_id)
        assert not chain.spoke_pool + chain.token_messenger + chain.message_transmitter


@pytest.mark.parametrize(
    ("before", "after", "named"),
    [
        ('kind = "across"', 'kind = "hop"', "bridges.across.kind"),
        ("https://across.example/api", "ftp://hush", "bridges.across: url is http://"),
        ("https://across.example/api", "https://across.example?a=1", "bridges.across: url has no query"),
        ("[bridges.across]", "[bridges.across]\nmargin_bps = 10001", "bridges.across: margin_bps is 0 to"),
        ("[bridges.across]", "[bridges.across]\nfill_within_s = 59", "bridges.across: fill_within_s is 60"),
        ("[bridges.across]", "[bridges.across]\nfill_within_s = 21601", "across: fill_within_s is 60"),
        ("[bridges.across]", '[bridges.across]\ntier = "fast"', "bridges.across: tier is for cctp alone"),
        ("[bridges.across]", "[bridges.across]\nstale_s = 5", "bridges.across: stale_s is above every_s"),
        ("[bridges.across]", "[bridges.across]\nevery_s = 0", "bridges.across.every_s"),
        ("[bridges.across]", "[bridges.across]\nspeed = 1", "bridges.across.speed: is not a setting"),
        ('tier = "fast"', 'tier = "slow"', "bridges.circle.tier"),
        ("8453 = ", "10 = ", "bridges.across.tokens[0].chains.10: "),
        ("8453 = ", "77 = ", "bridges.across.tokens[0].chains.77: unknown chain"),
        (f', 8453 = "{THERE}"', "", "bridges.across.tokens[0]: chains are 2 to 32, got 1"),
        ("chains = {", 'amounts = ["5", "1"]\nchains = {', "bridges.across.tokens[0]: amounts are two"),
        ("chains = {", 'amounts = ["0", "1"]\nchains = {', "bridges.across.tokens[0]: amounts are two"),
        ("chains = {", 'amounts = ["1", "NaN"]\nchains = {', "bridges.across.tokens[0]: amounts are two"),
        (f'8453 = "{THERE}"', '8453 = "0x12"', "bridges.across.tokens[0].chains.8453: expected an address"),
        (f'8453 = "{THERE}"', f'8453 = "{HERE}"', f"chains.8453: {HERE} is not in [[tokens]]"),
        ("decimals = 6\n[bridges", "decimals = 7\n[bridges", "bridges.circle.tokens[0].chains: CCTP carries"),
        ("decimals = 6\n[bridges", "decimals = 36\n[bridges", "bridges.circle.tokens[0].chains: CCTP"),
        (
            "[bridges.across]",
            "[chains.1]\ncctp_domain = 4294967296\n[bridges.across]",
            "chains.1.cctp_domain",
        ),
        ("[bridges.across]", '[chains.1]\nspoke_pool = "0x1"\n[bridges.across]', "chains.1.spoke_pool"),
    ],
)
def test_an_error_names_the_setting(before: str, after: str, named: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(named)):
        parse_settings(GOOD.replace(before, after, 1), {}, Path())


def test_cctp_needs_the_number_of_each_chain() -> None:
    text = GOOD.replace("8453", "56")
    with pytest.raises(ConfigError, match=re.escape("chains.56.cctp_domain: is not set; bridges.circle")):
        parse_settings(text, {}, Path())
    parse_settings(text, {"CAMBIST__CHAINS__56__CCTP_DOMAIN": "17"}, Path())


def test_decimals_of_across_differ_within_the_contracts_bound() -> None:
    text = GOOD.replace("decimals = 6\n[[", "decimals = 5\n[[").replace(
        "decimals = 6\n[b", "decimals = 36\n[b"
    )
    with pytest.raises(
        ConfigError, match=re.escape("across.tokens[0].chains: decimals differ by at most 30")
    ):
        parse_settings(text, {}, Path())


AMOUNTS = st.decimals("0.000000000001", 10**6, places=12)


@given(AMOUNTS, AMOUNTS, st.integers(0, 36))
def test_the_amounts_asked_for_are_two_whatever_the_decimals(
    one: Decimal, other: Decimal, decimals: int
) -> None:
    assume(one != other)
    amounts = min(one, other), max(one, other)
    small, large = BridgedToken(chains={1: HERE, 8453: THERE}, amounts=amounts).raw_amounts(decimals)
    assert 1 <= small < large
    for raw, amount in ((small, amounts[0]), (large, amounts[1])):
        assert abs(raw - Fraction(amount) * 10**decimals) <= 2


def test_a_name_has_no_comma() -> None:
    with pytest.raises(ConfigError, match="the name of a bridge is 1 to 128 characters without a comma"):
        parse_settings(GOOD.replace("bridges.across", 'bridges."a,b"'), {}, Path())


def test_a_wrong_checksum_is_refused() -> None:
    text = GOOD.replace(THERE, THERE.swapcase().replace("0X", "0x"))
    with pytest.raises(ConfigError, match=r"tokens\[1\]\.address|bridges\.across\.tokens\[0\]\.chains\.8453"):
        check_addresses(parse_settings(text, {}, Path()))
