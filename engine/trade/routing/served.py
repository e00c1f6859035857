"""Derives the served chains from the settings: contract addresses, listed tokens, makers. Pure.

A chain is served when it has a role (`market`, `delta`) and a node. Contract addresses that the settings lack
come from contracts.json in the state directory, written by `cambist devnet` and `cambist contracts deploy`.

A shipped chain without a node is not served. This is an error only if a maker is placed on the chain, or if
no chain at all is served.

Source: choices.md#chains-and-tokens; spec 1.3.6 and 1.3.7.
Choice: Market needs the role `market` and a node on a chain; Delta needs the role `delta`, a node and a
    relayer. Other requests are 422 `Unsupported chain`, except that GET /v2/quote for the role that a served
    chain lacks is `No route`.
Choice: The nine chains of spec 1.12.1 (Delta not on 100 and 43114) and the eight of spec 2.1.18 ship as
    settings without contract addresses.
"""

from collections.abc import Collection, Mapping

import msgspec
from msgspec import Struct

from ....config.chains import ADDRESS_SETTINGS, ChainSettings
from ....config.errors import ConfigError
from ....config.sections.venue import VenueMaker, VenueMakerChain
from ....config.settings import Settings
from ....config.tokens import TokenSettings
from ....crypto.addresses import parse_address, to_checksum
from ...chain.deploy.address_book import AddressBook, DeployedChain
from .tokens import TokenTable

_IN_BOOK = {
    "router": "router",
    "delta_contract": "delta",
    "rfq_contract": "rfq",
    "executor": "executor",
    "fee_vault": "fee_vault",
    "wrapped_native": "wrapped_native",
    "arrivals": "arrivals",
    "spoke_pool": "spoke_pool",
    "token_messenger": "token_messenger",
    "message_transmitter": "message_transmitter",
}
"""Name of a chain's setting for a contract address -> member of the chain's entry in contracts.json."""
_NEEDED = ("rfq_contract", "executor")
_NEEDED_BY = {"market": "router", "delta": "delta_contract"}


class ConfiguredChain(Struct, frozen=True):
    """A chain that the venue serves, as the settings describe it.

    Attributes:
        field: path of the chain in the settings, for errors.
        settings: the chain's settings with checksummed addresses; unset addresses are filled from
            contracts.json.
        addresses: name of a setting -> contract address, 20 bytes; empty bytes if unknown.
        tokens: lookup of the listed tokens and the native token.
        listed: tokens that the operator lists as tradable.
        stables: addresses of the tokens that are valued at one US dollar.
        makers: settings of the chain's makers by name.
    """

    chain_id: int
    field: str
    settings: ChainSettings
    addresses: Mapping[str, bytes]
    tokens: TokenTable
    listed: tuple[TokenSettings, ...]
    stables: frozenset[bytes]
    makers: Mapping[str, VenueMakerChain]

    @property
    def decimals(self) -> dict[bytes, int]:
        """Token address -> decimals, for the chain's listed tokens."""
        return {parse_address(token.address, "address"): token.decimals for token in self.listed}


def served_chains(
    settings: Settings,
    makers: Mapping[str, VenueMaker],
    book: AddressBook,
    reachable: Collection[int] = (),
    field: str = "venue.makers",
) -> dict[int, ConfiguredChain]:
    """Determine the chains that the venue serves (those with a role and a node): chain id -> chain.

    Args:
        makers: settings of the makers by name.
        book: content of contracts.json.
        reachable: ids of chains that need no node in the settings.
        field: path of `makers` in the settings, for errors.

    Raises:
        ConfigError: names the wrong setting.
    """
    served = {
        chain_id: _served(settings, makers, chain_id, chain, book.chains.get(str(chain_id)))
        for chain_id, chain in sorted(settings.chains.items())
        if (chain.market or chain.delta) and (chain.node.urls or chain_id in reachable)
    }
    # Before the check for no chain at all: this error names the setting of the chain that is missing.
    for name, maker in makers.items():
        for chain_id in maker.chains:
            if chain_id not in served:
                raise ConfigError(f"{field}.{name}.chains.{chain_id}", _why_not(settings, chain_id))
    if not served:
        raise ConfigError("chains", "no chain has `market` or `delta` and a node")
    return served


def _why_not(settings: Settings, chain_id: int) -> str:
    chain = settings.chains.get(chain_id)
    if chain is None:
        return f"unknown chain {chain_id} in [chains]"
    if not (chain.market or chain.delta):
        return f"the chain is not served: chains.{chain_id} has neither `market` nor `delta`"
    return f"the chain is not served: chains.{chain_id}.node.urls names no node"


def _served(
    settings: Settings,
    makers: Mapping[str, VenueMaker],
    chain_id: int,
    chain: ChainSettings,
    entry: DeployedChain | None,
) -> ConfiguredChain:
    field = f"chains.{chain_id}"
    chain = _with_book(chain, entry)  # first: addresses of contracts.json count as set
    needed = [*_NEEDED, *(name for role, name in _NEEDED_BY.items() if getattr(chain, role))]
    for name in needed:
        if not getattr(chain, name):
            raise ConfigError(f"{field}.{name}", "is not set, nor is it in contracts.json of state_dir")
    addresses = {
        name: parse_address(text, f"{field}.{name}") if (text := getattr(chain, name)) else b""
        for name in ADDRESS_SETTINGS
    }
    listed = tuple(token for token in settings.tokens if token.chain_id == chain_id)
    if not listed:
        raise ConfigError("tokens", f"none is listed of chain {chain_id}, which is served")
    texts = {name: to_checksum(address) for name, address in addresses.items() if address}
    return ConfiguredChain(
        chain_id=chain_id,
        field=field,
        settings=msgspec.structs.replace(chain, **texts),
        addresses=addresses,
        tokens=TokenTable(listed, addresses["wrapped_native"], chain.native_symbol),
        listed=listed,
        stables=frozenset(parse_address(token.address, "address") for token in listed if token.stable_usd),
        makers={name: maker.chains[chain_id] for name, maker in makers.items() if chain_id in maker.chains},
    )


def _with_book(chain: ChainSettings, entry: DeployedChain | None) -> ChainSettings:
    if entry is None:
        return chain
    found = {
        setting: getattr(entry, member) or ""
        for setting, member in _IN_BOOK.items()
        if not getattr(chain, setting)
    }
    return msgspec.structs.replace(chain, **found)
