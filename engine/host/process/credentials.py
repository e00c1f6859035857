"""Load a role's credentials from its settings: checked addresses, keys with policies, request verifiers.

Choice: A key of the development mnemonic's first 20 accounts, which everybody knows, signs for devnets alone.
    A fork of a real chain needs a key of its own.
"""

import re
from collections.abc import Callable, Iterable
from typing import TypeVar

from ....codecs.amounts import parse_amount
from ....config.chains import ADDRESS_SETTINGS, DEVNET_CHAINS
from ....config.error_text import shown
from ....config.errors import ConfigError, InvalidInput
from ....config.settings import KeySettings, Settings
from ....crypto.addresses import checked_address, to_checksum
from ....crypto.custody.keys import signing_key
from ....crypto.custody.mnemonic import dev_accounts
from ....crypto.custody.signing_policy import PolicedKey, SigningPolicy
from ....crypto.hmac_auth import ReplayWindow, RequestVerifier, decode_secret

V = TypeVar("V")

_CHAIN_ID = re.compile(r"[1-9][0-9]{0,17}\Z")


def check_addresses(settings: Settings) -> None:
    """Refuse any address of the settings whose EIP-55 checksum is wrong.

    Raises:
        ConfigError: an address has a wrong checksum; the error names the setting.
    """
    named = [
        (f"chains.{chain_id}.{name}", getattr(chain, name))
        for chain_id, chain in settings.chains.items()
        for name in ADDRESS_SETTINGS
    ]
    named += [(f"tokens[{at}].address", token.address) for at, token in enumerate(settings.tokens)]
    named += [
        (f"bridges.{name}.tokens[{at}].chains.{chain_id}", address)
        for name, bridge in settings.bridges.items()
        for at, token in enumerate(bridge.tokens)
        for chain_id, address in token.chains.items()
    ]
    named += [(f"partners.{name}.address", partner.address) for name, partner in settings.partners.items()]
    named += [
        (f"venue.makers.{name}.accounts[{at}]", account)
        for name, maker in (settings.venue.makers if settings.venue else {}).items()
        for at, account in enumerate(maker.accounts)
    ]
    for field, address in named:
        if address:
            _configured(checked_address, field, address)


def policed_key(name: str, settings: KeySettings) -> PolicedKey:
    """Load a configured signing key, restricted to the signatures that its policy allows.

    Args:
        name: name of the key in the settings, for errors.

    Raises:
        ConfigError: the key cannot be read, everybody knows it, or its policy has no contract or a malformed
            setting.
    """
    field = f"keys.{name}.policy"
    policy = settings.policy
    if not policy.contracts:
        raise ConfigError(f"{field}.contracts", "names no contract: the key could sign no data")
    if policy.expiry_min_s > policy.expiry_max_s:
        raise ConfigError(f"{field}.expiry_min_s", "is above expiry_max_s")
    amounts = None
    if policy.amounts_max is not None:
        amounts = {
            _chain_and_address(f"{field}.amounts_max", where): _configured(
                parse_amount, f"{field}.amounts_max.{where}", most
            )
            for where, most in policy.amounts_max.items()
        }
        if len(amounts) != len(policy.amounts_max):
            raise ConfigError(f"{field}.amounts_max", "names a token twice")
    contracts = frozenset(_chain_and_address(f"{field}.contracts", where) for where in policy.contracts)
    # After the checks of the policy, since a keystore takes long to decrypt.
    key = signing_key(settings.source, settings.password)
    check_secrecy(f"keys.{name}", key.address, (chain_id for chain_id, _ in contracts))
    return PolicedKey(key, SigningPolicy(contracts, amounts, policy.expiry_min_s, policy.expiry_max_s))


def check_secrecy(field: str, account: bytes, chain_ids: Iterable[int]) -> None:
    """Refuse the key of a development node's account, which everybody knows, on a chain that is no devnet.

    Args:
        field: setting or option of the key, for the error.
        account: address of the key, 20 bytes.
        chain_ids: chains that the key signs for.

    Raises:
        ConfigError: everybody knows the key.
    """
    real = sorted(set(chain_ids).difference(DEVNET_CHAINS))
    if real and account in dev_accounts():
        raise ConfigError(
            field, f"is the public key of {to_checksum(account)}: on chain {real[0]} anybody may sign with it"
        )


def request_verifier(settings: Settings, *, replay_window: bool | None = None) -> RequestVerifier:
    """Build the verifier of HMAC-signed requests, with the access keys of all configured domains.

    Args:
        replay_window: whether a POST with an already used signature is refused; None uses the settings.

    Raises:
        ConfigError: a secret does not fit its configured encoding.
    """
    remember = settings.auth.replay_window if replay_window is None else replay_window
    domains = {}
    for name, domain in settings.auth.domains.items():
        try:
            domains[name] = [
                (key.access_key, decode_secret(key.secret.reveal(), domain.secret_encoding))
                for key in domain.keys
            ]
        except ConfigError as error:
            raise ConfigError(f"auth.domains.{name}", error.detail) from None
    return RequestVerifier(
        domains,
        strip_prefix=settings.auth.strip_prefix,
        replay_window=ReplayWindow() if remember else None,
    )


def _configured(parse: Callable[[object, str], V], field: str, text: str) -> V:
    """Parse a setting's value; a parse error becomes a ConfigError that names the setting."""
    try:
        return parse(text, field)
    except InvalidInput as error:
        raise ConfigError(field, f"expected {error.expected}, got {shown(text)}") from None


def _chain_and_address(field: str, text: str) -> tuple[int, bytes]:
    chain_id, _, address = text.partition(":")
    if not _CHAIN_ID.match(chain_id):
        raise ConfigError(field, f"expected chainId:address, got {text!r}")
    return int(chain_id), _configured(checked_address, field, address)
