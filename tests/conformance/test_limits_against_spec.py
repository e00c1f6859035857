"""Each number that the specification fixes, against the constant that holds it."""

import pytest

from cambist.config import limits
from cambist.config.chains import SHIPPED_CHAINS

NUMBERS: list[tuple[str, str, object]] = [
    # (where it stands, constant, value)
    ("spec 1.27.1: slippage, 0 to 10000 basis points", "SLIPPAGE_BPS_MIN", 0),
    ("spec 1.27.1: slippage, 0 to 10000 basis points", "SLIPPAGE_BPS_MAX", 10_000),
    ("spec 1.27.1: slippage, 100 = 1%", "BPS_ONE", 100 * 100),
    ("spec 1.27.2: slippage, default 100 on build", "BUILD_SLIPPAGE_BPS_DEFAULT", 100),
    ("spec 1.27.3: partnerFeeBps, 0 to 200", "PARTNER_FEE_BPS_MIN", 0),
    ("spec 1.27.3: partnerFeeBps, 0 to 200", "PARTNER_FEE_BPS_MAX", 200),
    ("spec 1.12.15: partner, default anon (1 bps fee)", "ANON_FEE_BPS", 1),
    ("spec 1.14.29: isCapSurplus, caps surplus at 1%", "SURPLUS_CAP_BPS", 100),
    ("spec 1.27.4: interval, at least 60 seconds", "TWAP_INTERVAL_MIN_S", 60),
    ("spec 1.27.5: numSlices, at least 2", "TWAP_SLICES_MIN", 2),
    ("spec 1.27.7: cancel batch, at most 100 order ids", "CANCEL_IDS_MAX", 100),
    ("spec 1.27.8: quote freshness, about 30 seconds", "ROUTE_FRESH_MS", 30 * 1_000),
    ("spec 1.27.9: maxImpact default, 15 percent", "MAX_IMPACT_PERCENT_DEFAULT", 15),
    ("spec 1.27.10: route tokens, at most 4", "ROUTE_TOKENS_MAX", 4),
    ("spec 1.28.3: version, 5 or 6.2", "MARKET_VERSIONS", ("5", "6.2")),
    ("spec 1.28.4: version, default 5 when omitted", "MARKET_VERSION_DEFAULT", "5"),
    ("spec 1.13.8: network, default 1", "NETWORK_DEFAULT", 1),
    ("spec 1.27.11: Delta quote chains", "QUOTE_CHAINS", (1, 10, 56, 100, 130, 137, 8453, 42161, 43114)),
    ("spec 1.27.12: Market chains", "MARKET_CHAINS", (1, 10, 56, 137, 8453, 42161, 43114, 100)),
    ("choices.md#chains-and-tokens: Delta chains", "DELTA_CHAINS", (1, 10, 56, 130, 137, 8453, 42161)),
    (
        "spec 1.1.24: native token placeholder, mixed case exactly",
        "NATIVE_PLACEHOLDER",
        "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE",
    ),
    ("spec 2.1.18: RFQ contract's chains", "RFQ_CHAINS", (1, 10, 56, 137, 8453, 42161, 43114, 100)),
    ("spec 2.3.13: signing domain version is 1", "RFQ_DOMAIN_VERSION", "1"),
    ("spec 2.3.2: per-maker nonce in the lower 96 bits", "OTC_NONCE_BITS", 96),
    ("spec 2.15.1: limit 100", "LISTING_LIMIT_DEFAULT", 100),
    ("spec 2.15.2: offset 0", "LISTING_OFFSET_DEFAULT", 0),
    ("choices.md#otc-orders: limit at most 1000", "LISTING_LIMIT_MAX", 1_000),
    ("interop 1: clients hard-code the name", "RFQ_DOMAIN_NAME", "AUGUSTUS RFQ"),
    ("interop 2: clients hard-code name and version", "DELTA_DOMAIN_NAME", "Portikus"),
    ("interop 2: clients hard-code name and version", "DELTA_DOMAIN_VERSION", "2.0.0"),
    ("spec 3.13.1: timestamp tolerance, about 30 seconds either way", "AUTH_TOLERANCE_MS", 30 * 1_000),
    ("spec 3.13.2: order expiry, at least 2 minutes in the future", "FIRM_EXPIRY_MIN_S", 2 * 60),
    ("spec 3.13.3: nonceAndMeta random part, below 2^96", "FIRM_RANDOM_BITS", 96),
    ("spec 3.13.4: token type, ERC20 only", "TOKEN_TYPE", "ERC20"),
    ("interop 3: GET /v2/delta/orders, limit 100", "ORDER_PAGE_LIMIT_DEFAULT", 100),
    ("interop 3: GET /v2/delta/orders, at most 1000", "ORDER_PAGE_LIMIT_MAX", 1_000),
    ("ours: two live keys for rotation", "AUTH_KEYS_PER_DOMAIN_MAX", 2),
]


@pytest.mark.parametrize(
    ("source", "name", "value"), NUMBERS, ids=[f"{name}: {source}" for source, name, _ in NUMBERS]
)
def test_constant_is_the_specs_number(source: str, name: str, value: object) -> None:
    assert getattr(limits, name) == value, source


def test_constants_taken_from_the_spec_are_all_in_the_table() -> None:
    outside = {
        name
        for name, value in vars(limits).items()
        if name.isupper() and isinstance(value, int | str | tuple) and name not in {row[1] for row in NUMBERS}
    }
    ours = (
        "UINT256_", "AMOUNT_", "DECIMAL_", "TOKEN_DECIMALS_", "JSON_", "MAKER_", "TYPED_DATA_",
        "REFUSED_", "NAME_", "QUERY_BYTES_", "QUERY_PARAMETERS_", "ROUTE_BYTES_", "REPLAY_",
        "RELAY_", "KEY_FILE_", "KEYSTORE_", "STORE_", "FOLLOW_", "PRUNE_", "BOOT_", "SOCKET_UNSENT_",
        "RLP_", "EMBEDDED_", "REVERT_", "INDEX_", "WATCH_", "CHAIN_", "DEVNET_", "ADMISSION_", "VENUE_",
        "AGENT_", "CONTRACT_", "SERVER_", "WEBHOOK_", "OTC_LIVE_", "AS_OF_", "OTHER_DOMAINS_",
        "ORDER_BODY_", "CHECKSUMS_", "UNIX_SECONDS_", "BRIDGE_", "CCTP_", "DEV_BRIDGE_",
        "LOG_DATA_", "DELTA_SHARES_", "VAULT_", "STRATEG", "HANDLER", "OWN_", "ARRIVAL",
        "PRICE_HISTORY_", "SHARED_ANSWERS_", "OPERATOR_SERIES_", "TAPE_", "DEPTH_",
    )  # fmt: skip
    assert {name for name in outside if not name.startswith(ours)} == set()


def test_amounts_are_bounded_by_the_contracts_word() -> None:
    assert limits.UINT256_MAX == (1 << 256) - 1
    assert len(str(limits.UINT256_MAX)) == limits.AMOUNT_DIGITS_MAX


def test_decimals_have_room_for_the_finest_token() -> None:
    assert limits.TOKEN_DECIMALS_MAX <= limits.DECIMAL_FRACTION_DIGITS_MAX


@pytest.mark.parametrize(
    ("role", "chains"),
    [
        ("delta", {1, 10, 56, 130, 137, 8453, 42161}),
        ("market", {1, 10, 56, 100, 137, 8453, 42161, 43114}),
        ("rfq", {1, 10, 56, 100, 137, 8453, 42161, 43114}),
    ],
)
def test_shipped_chains_serve_the_specs_roles(role: str, chains: set[int]) -> None:
    assert {chain_id for chain_id, chain in SHIPPED_CHAINS.items() if getattr(chain, role)} == chains


def test_shipped_chains_are_those_one_can_quote_on() -> None:
    assert set(SHIPPED_CHAINS) == {1, 10, 56, 100, 130, 137, 8453, 42161, 43114}
