"""A relayer as the settings have it: `[relayers.ID]` with its key and its chain."""

from collections.abc import Callable

from ....config.errors import ConfigError
from ....config.settings import Settings
from ....crypto.addresses import parse_address
from ....crypto.custody.keys import signing_key
from ....crypto.custody.transaction_policy import PolicedRelayKey, TransactionPolicy
from ...store.leases import Leases
from ...store.store import Store
from ..port import Chain
from .relay_plan import relay_policy
from .relayer import Relayer


def relay_key(settings: Settings, chain_id: int) -> PolicedRelayKey:
    """The key of a chain's relayer: it calls the Delta contract, and itself to fill a nonce; nothing else.

    Raises:
        ConfigError: names the setting: there is no such relayer, its key cannot be read, or the chain has no
            Delta contract.
    """
    relayer = settings.relayers.get(chain_id)
    if relayer is None:
        raise ConfigError(f"relayers.{chain_id}", "is not set")
    named = settings.keys[relayer.key]
    try:
        key = signing_key(named.source, named.password)
    except ConfigError as error:
        raise ConfigError(f"keys.{relayer.key}", f"{error.key} {error.detail}") from None
    contract = settings.chains[chain_id].delta_contract
    if not contract:
        raise ConfigError(f"chains.{chain_id}.delta_contract", "is not set: there is nothing to call")
    targets = frozenset(
        (chain_id, target)
        for target in (key.address, parse_address(contract, f"chains.{chain_id}.delta_contract"))
    )
    return PolicedRelayKey(key, TransactionPolicy(targets, relayer.fee_cap_wei, relayer.gas_max))


def relayer_of(
    settings: Settings, chain: Chain, store: Store, leases: Leases, now_ms: Callable[[], int]
) -> Relayer:
    """The relayer of a chain; `run` is its task.

    Args:
        leases: the engine's own, which run longer than this.

    Raises:
        ConfigError: see `relay_key`.
    """
    key = relay_key(settings, chain.chain_id)
    confirmations = settings.chains[chain.chain_id].confirmations
    policy = relay_policy(settings.relayers[chain.chain_id], confirmations)
    return Relayer(chain, store, key, leases, policy, now_ms)
