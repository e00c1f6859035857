"""Parses the options that the contract commands share: settings, chain, named key, caps."""

import click

from ....codecs.amounts import parse_units
from ....codecs.contracts.abi import decode_uint, selector
from ....config import limits
from ....config.chains import DEVNET_CHAINS, ChainSettings
from ....config.errors import ConfigError, InvalidInput
from ....config.settings import Settings
from ....crypto.addresses import checked_address, to_checksum
from ....crypto.custody.keys import signing_key
from ....crypto.secp256k1 import SigningKey
from ...chain.nodes.rpc import RpcChain
from ...chain.port import EthCall
from ..parameters import usage_errors
from ..sources import config_option

_DECIMALS = selector("decimals()")

CONFIG = config_option("The settings file (TOML); the defaults alone if absent.")
CHAIN = click.option("--chain", "chain_id", type=click.IntRange(1), required=True, help="The chain id.")


def named_key(settings: Settings, name: str) -> SigningKey:
    """Return the key that the settings' section [keys] has under a name. Raises ConfigError for an unknown
    name."""
    named = settings.keys.get(name)
    if named is None:
        raise ConfigError("--key", f"unknown key {name!r} in [keys]; otherwise env:NAME or file:PATH")
    return signing_key(named.source, named.password)


def chain_settings(settings: Settings, chain_id: int) -> ChainSettings:
    """Return the settings of a chain. A devnet without settings has defaults; any other chain without
    settings raises ConfigError."""
    chain = settings.chains.get(chain_id)
    if chain is None and chain_id not in DEVNET_CHAINS:
        raise ConfigError(f"chains.{chain_id}", "is not set")
    return chain or ChainSettings(name=f"Devnet {chain_id}")


async def raw_cap(chain: RpcChain, token: bytes, cap: str) -> int:
    """Convert the text of a token's cap to raw units: an amount of whole tokens, or `max` for no cap. Raises
    ConfigError for any other text.
    """
    if cap == "max":
        return limits.UINT256_MAX
    field = f"--cap {to_checksum(token)}"
    try:
        decimals = decode_uint(await chain.call(EthCall(token, _DECIMALS)))
        if decimals > limits.TOKEN_DECIMALS_MAX:
            raise ConfigError(field, f"the token has {decimals} decimals")
        raw = parse_units(cap, decimals, field)
    except InvalidInput as error:
        raise ConfigError(field, error.detail) from None
    if raw > limits.CONTRACT_CAP_MAX:
        raise ConfigError(field, f"is at most {limits.CONTRACT_CAP_MAX} raw units, or `max`, got {raw}")
    return raw


def parse_caps(texts: tuple[str, ...], settings: Settings, chain_id: int) -> list[tuple[bytes, str]]:
    """Parse the values of `--cap` to (token's address, text of the amount); a token is named by its address,
    or by a symbol that the settings list."""
    listed = {token.symbol: token.address for token in settings.tokens if token.chain_id == chain_id}
    caps = []
    for text in texts:
        token, _, amount = text.partition("=")
        with usage_errors():
            caps.append((checked_address(listed.get(token, token), "--cap"), amount))
        if not amount:
            raise click.UsageError(f"--cap: expected TOKEN=AMOUNT, got {text}")
    return caps
