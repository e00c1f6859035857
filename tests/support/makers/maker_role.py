"""A market maker on one chain, from settings: two tokens, one pair, funds in the configuration."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.config.settings import Settings, parse_settings
from cambist.engine.maker.app import random96_source
from cambist.engine.maker.role import ChainRole, build_chain
from cambist.engine.process.credentials import policed_key

CHAIN_ID = 31_337
KEY_HEX = "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80"
MAKER = "0xf39fd6e51aad88f6f4ce6ab8827279cfffb92266"
CONTRACT = "0x5fbdb2315678afecb367f032d93f642f64180aa3"
TAKER = "0x00000000000000000000000000000000000000aa"
USER = "0x00000000000000000000000000000000000000bb"
WETH = "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"
USDC = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"
DAI = "0x6b175474e89094c44da98b954eedeac495271d0f"
SECRET = "a secret of the venue's onboarding"
NOW_MS = 1_795_000_000_000

GRID = PriceGrid(
    bids=(("2500", "1"), ("2499.5", "2"), ("2490", "10")), asks=(("2501", "1"), ("2502", "2"), ("2510", "10"))
)

TEXT = f"""
[chains.{CHAIN_ID}]
name = "devnet"
rfq = true
rfq_contract = "{CONTRACT}"
[keys.maker]
source = "env:MAKER_KEY"
[keys.maker.policy]
contracts = ["{CHAIN_ID}:{CONTRACT}"]
[auth.domains.venue]
keys = [{{ access_key = "key-1", secret = "env:VENUE_SECRET" }}]
[auth.domains.operator]
keys = [{{ access_key = "key-2", secret = "env:OPERATOR_SECRET" }}]
[maker.chains.{CHAIN_ID}]
key = "maker"
price_source = "static"
price_options = {{ path = "prices.json" }}
takers = ["{TAKER}"]
[maker.chains.{CHAIN_ID}.tokens.WETH]
address = "{WETH}"
decimals = 18
balance = "100"
[maker.chains.{CHAIN_ID}.tokens.USDC]
address = "{USDC}"
decimals = 6
balance = "250000"
[maker.chains.{CHAIN_ID}.tokens.DAI]
address = "{DAI}"
decimals = 18
balance = "250000"
[maker.chains.{CHAIN_ID}.pairs."WETH/USDC"]
base = "WETH"
quote = "USDC"
liquidity_usd = 1000000
"""
ENVIRON = {"MAKER_KEY": KEY_HEX, "VENUE_SECRET": SECRET, "OPERATOR_SECRET": "the operator's own secret"}


def settings_of(more: str = "", folder: Path = Path(), **chain: Any) -> Settings:
    """The settings above; `more` is TOML that is added, `chain` changes settings of the chain's surface."""
    settings = parse_settings(TEXT + more, ENVIRON, folder)
    assert settings.maker
    changed = msgspec.structs.replace(settings.maker.chains[CHAIN_ID], **chain)
    return msgspec.structs.replace(
        settings, maker=msgspec.structs.replace(settings.maker, chains={CHAIN_ID: changed})
    )


def a_chain(
    settings: Settings | None = None,
    *,
    grid: PriceGrid | None = GRID,
    share: int = 1,
    random96: Callable[[], bytes] | None = None,
    **chain: Any,
) -> ChainRole:
    """The chain of these settings, quoting `grid` since NOW_MS."""
    settings = settings or settings_of("", Path(), **chain)
    keys = {name: policed_key(name, key) for name, key in settings.keys.items()}
    assert settings.maker
    role = build_chain(settings, settings.maker, CHAIN_ID, keys, random96 or random96_source(), share)
    if grid is not None:
        role.board.apply("WETH/USDC", grid, NOW_MS)
    return role


def firm_request(**changes: Any) -> bytes:
    """The body of a firm request: the user sells 1 WETH; a change to None leaves the key out."""
    body: dict[str, Any] = {
        "makerAsset": USDC,
        "takerAsset": WETH,
        "takerAmount": str(10**18),
        "userAddress": USER,
        "takerAddress": TAKER,
    }
    return msgspec.json.encode({key: value for key, value in (body | changes).items() if value is not None})
