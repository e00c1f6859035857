"""Settings: one frozen tree from defaults, a TOML file and the environment, in that order.

    [chains.1]                       # what differs from the shipped chain
    rfq_contract = "0x..."
    [keys.maker]
    source = "env:MAKER_KEY"         # secrets are references, never literals
    [keys.maker.policy]
    contracts = ["1:0x..."]

The environment overrides single settings: `CAMBIST__CHAINS__1__CONFIRMATIONS=20`, names joined by two
underscores, the value as plain text, or as TOML where it is quoted, a list or a table. Each part of a
variable's name stands for a key of the file in any letter case. If the file has no such key, the part itself
becomes the key, in lower case if the part is all upper case. An unknown setting, in the file or in a
variable, raises a ConfigError that names the setting. Secrets are read once, at load, and shown nowhere.
Numbers and booleans of variables may be quoted, since the environment knows only text.

This module checks shapes. `cambist config check`, and each role at its start, check the rest with
cryptography (checksums, keys).
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from . import limits
from .chains import ADDRESS_SETTINGS, DEVNET_CHAINS, SHIPPED_CHAINS, ChainSettings
from .error_text import shown
from .errors import ConfigError
from .secret import Secret, SecretEncoding, is_unicode, read_secret
from .sections.agent import AgentSettings
from .sections.bridges import BridgeSettings
from .sections.maker import MakerSettings
from .sections.partners import ANON, DEFAULT_TIER, RegisteredPartner, Tier
from .sections.relayer import RelayerSettings
from .sections.server import ServerSettings
from .sections.store import StoreSettings
from .sections.venue import SHIPPED_RATE_TIERS, VenueSettings
from .tokens import TokenSettings

ENVIRONMENT_PREFIX = "CAMBIST__"
SETTINGS_BYTES_MAX = 1 << 20

_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}\Z")
_CHAIN_ID = re.compile(r"[1-9][0-9]{0,17}\Z")
_PATH_PART = re.compile(r"\[\.\.\.\]|\[[0-9]+\]|[^.\[\]`]+")
_UNKNOWN_KEY = re.compile(r"Object contains unknown field `(?P<key>.+)`\Z")


class PolicySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Limits on the orders that a key signs; crypto.custody.signing_policy enforces the limits.

    Attributes:
        contracts: `chainId:address` of each contract for which the key may sign.
        amounts_max: `chainId:token address` -> most raw units of one signature; other tokens are
            refused. None sets no bound.
        expiry_min_s, expiry_max_s: least and greatest seconds from the signature to an order's expiry.
    """

    contracts: tuple[str, ...] = ()
    amounts_max: dict[str, str] | None = None
    expiry_min_s: int = limits.FIRM_EXPIRY_MIN_S
    expiry_max_s: int = 3_600


class KeySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A signing key and the limits on its signatures.

    Attributes:
        source: `env:NAME` or `file:PATH` of the key, hexadecimal or a keystore.
        password: `env:NAME` or `file:PATH` of the keystore's password.
        policy: limits on what the key signs.
    """

    source: Secret
    password: Secret | None = None
    policy: PolicySettings = PolicySettings()


class AccessKeySettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A credential of a caller that signs its requests.

    Attributes:
        access_key: public name of the credential, which each signed request carries.
        secret: `env:NAME` or `file:PATH` of the secret that both sides know.
    """

    access_key: str
    secret: Secret


class DomainSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A caller (domain) that signs its requests.

    Attributes:
        keys: one valid credential, or two during a rotation.
        secret_encoding: encoding of the text of each secret: utf8, base64 or hex.
    """

    keys: tuple[AccessKeySettings, ...]
    secret_encoding: SecretEncoding = "utf8"  # noqa: S105


class AuthSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of request signatures (spec 3.10).

    Attributes:
        domains: callers whose signed requests are accepted, with their credentials.
        strip_prefix: prefix removed from the path before verification (choices.md#makers-at-the-venue).
        replay_window: whether a repeated signature on POST is refused (choices.md#makers-at-the-venue); for a
            server of one process.
    """

    domains: dict[str, DomainSettings] = {}
    strip_prefix: str = ""
    replay_window: bool = False


class Settings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All settings of an operator.

    Attributes:
        state_dir: folder of run-time files (database, devnet's contracts.json).
        chains: chain id -> settings of the chain, the shipped chains included.
        tokens: listed tokens.
        bridges: bridges of orders across chains, by the name that requests and answers use.
        partners: registered partners by name.
        tiers: limits on the fees of partners, by name.
        strict_partner: whether an order without `partner` is refused (choices.md#fees-and-partners).
        keys: signing keys by name.
        auth: credentials of callers that sign their requests.
        route_seal_keys: secrets that seal Market routes; the first key seals, every key is tried in a check.
        server: HTTP server of the role that runs.
        store: database of orders and events.
        relayers: chain id -> sender of the chain's transactions.
        maker: the market maker's role.
        venue: the venue's role.
        agent: the agent's role.
    """

    state_dir: str = "~/.local/state/cambist"
    chains: dict[int, ChainSettings] = msgspec.field(default_factory=SHIPPED_CHAINS.copy)
    tokens: tuple[TokenSettings, ...] = ()
    bridges: dict[str, BridgeSettings] = {}
    partners: dict[str, RegisteredPartner] = {}
    tiers: dict[str, Tier] = {}
    strict_partner: bool = False
    keys: dict[str, KeySettings] = {}
    auth: AuthSettings = AuthSettings()
    route_seal_keys: tuple[Secret, ...] = ()
    server: ServerSettings = ServerSettings()
    store: StoreSettings = StoreSettings()
    relayers: dict[int, RelayerSettings] = {}
    maker: MakerSettings | None = None
    venue: VenueSettings | None = None
    agent: AgentSettings | None = None


def read_settings(path: Path | None, environ: Mapping[str, str], *, reveal: bool = True) -> Settings:
    """Read the settings of a file, or the defaults, overridden by the environment.

    Args:
        path: TOML file, or None.
        environ: the environment; CAMBIST__ variables override settings, other variables may hold secrets.
        reveal: read the secrets that references name; False leaves them empty.

    Raises:
        ConfigError: names the file or the setting, the expected and the received value.
    """
    if path is None:
        return parse_settings("", environ, Path(), reveal=reveal)
    try:
        with path.open("rb") as file:
            raw = file.read(SETTINGS_BYTES_MAX + 1)
    except OSError as error:
        raise ConfigError(str(path), f"cannot be read: {error.strerror}") from None
    if len(raw) > SETTINGS_BYTES_MAX:
        raise ConfigError(str(path), f"is larger than {SETTINGS_BYTES_MAX} bytes")
    try:
        return parse_settings(raw.decode(), environ, path.parent, reveal=reveal)
    except UnicodeDecodeError:
        raise ConfigError(str(path), "is not UTF-8 text") from None


def parse_settings(text: str, environ: Mapping[str, str], folder: Path, *, reveal: bool = True) -> Settings:
    """Read the settings as `read_settings` does, from TOML text.

    `folder` is the start of relative paths of secret files.
    """
    try:
        tree = tomllib.loads(text)
    except (ValueError, RecursionError) as error:  # ValueError: also an integer of too many digits
        raise ConfigError("settings", f"not TOML: {error}") from None
    # Sorted: the variable of a whole table comes before those of the table's members, since it replaces them.
    # Before the merges below: a chain or rate tier that only variables name gets its shipped members, too.
    texts = [
        _override(tree, name, environ[name])
        for name in sorted(environ)
        if name.startswith(ENVIRONMENT_PREFIX)
    ]
    tree["chains"] = _with_shipped_chains(tree.get("chains", {}))
    if isinstance(venue := tree.get("venue"), dict):
        venue["rate_tiers"] = _with_shipped(venue.get("rate_tiers", {}), SHIPPED_RATE_TIERS)

    known: dict[str, Secret] = {}  # by reference: both passes below see one version, and a pipe is read once

    def read_field(_kind: type, value: object) -> Secret:  # a Secret is the only field msgspec cannot read
        if not reveal:
            return Secret("", "not read")
        if isinstance(value, str) and value in known:
            return known[value]
        try:
            found = read_secret(value, environ, "", folder)
        except ConfigError as error:
            raise ValueError(error.detail.removeprefix(": ")) from None
        known[str(value)] = found
        return found

    def convert(candidate: dict[str, Any], *, strict: bool = False) -> Settings:
        return msgspec.convert(candidate, Settings, strict=strict, str_keys=True, dec_hook=read_field)

    # Two passes. The lax pass reads the text of variables as numbers and booleans, which then replace that
    # text in `tree`. The strict pass refuses the text that is left: `confirmations = "12"` in the file.
    try:
        settings = convert(tree)
    except msgspec.ValidationError as error:
        raise _refusal(tree, convert, error) from None
    for keys in texts:
        _type_text(tree, keys, settings)
    try:
        convert(tree, strict=True)
    except msgspec.ValidationError as error:
        raise _refusal(tree, partial(convert, strict=True), error) from None
    _check(settings)
    return settings


def _type_text(tree: dict[str, Any], keys: Sequence[str], settings: Settings) -> None:
    """Replace a variable's text in the tree by the typed value, if this value is a boolean or a number.

    Args:
        tree: the untyped settings, which the function changes.
        keys: path of the variable's setting.
        settings: the typed settings, converted from `tree`.
    """
    table: Any = tree
    value: Any = settings
    for key in keys[:-1]:
        table, value = table[key], _member(value, key)
    typed = _member(value, keys[-1])
    if isinstance(typed, bool | int | float):
        table[keys[-1]] = typed


def _member(value: Any, key: str) -> Any:
    """Member of a settings object, or entry of a table of such objects."""
    if isinstance(value, dict):
        return value.get(key, value.get(int(key)) if key.isdecimal() else None)
    return getattr(value, key, None)


def _override(tree: dict[str, Any], name: str, text: str) -> list[str]:
    """Set, in `tree`, the setting that a variable such as `CAMBIST__CHAINS__1__NAME` overrides.

    Returns:
        The keys that lead to the setting.

    Raises:
        ConfigError: the variable's name leads to no setting or to two, or its name or value is not UTF-8
            text.
    """
    if not is_unicode(name + text):
        raise ConfigError(ascii(name), "name and value must be UTF-8 text")
    keys = name.removeprefix(ENVIRONMENT_PREFIX).split("__")
    if not all(keys):
        raise ConfigError(name, "does not name a setting")
    table: Any = tree
    found: list[str] = []
    for key in keys[:-1]:
        if not isinstance(table, dict):
            break
        found.append(_key_of(table, key, name))
        table = table.setdefault(found[-1], {})
    if not isinstance(table, dict):
        raise ConfigError(name, "does not name a setting")
    last = _key_of(table, keys[-1], name)
    table[last] = text
    if text.lstrip().startswith(("[", "{", '"', "'")):
        # A text that only looks like TOML stays text: the host `[::1]`, or one whose next line sets a key.
        try:
            document = tomllib.loads(f"value = {text}")
        except (ValueError, RecursionError):
            document = {}
        if len(document) == 1:
            table[last] = document["value"]
    return [*found, last]


def _key_of(table: dict[str, Any], key: str, name: str) -> str:
    """Find the key of `table` that a part of an environment variable's name denotes, in any letter case.

    The result is a new key if `table` has no such key yet.

    Args:
        key: part of the variable's name.
        name: the whole name, for errors.
    """
    made = key.lower() if key.isupper() else key
    alike = [known for known in table if known.lower() == key.lower()]
    exact = next((known for known in (key, made) if known in alike), None)
    if exact is None and len(alike) > 1:
        raise ConfigError(name, f"names two entries, {alike[0]} and {alike[1]}")
    return exact or (alike[0] if alike else made)


def _with_shipped_chains(chains: object) -> object:
    """Merge shipped chains with the operator's settings.

    A development chain serves OTC orders and admits any handler, unless its settings say otherwise.
    """
    if not isinstance(chains, dict):
        return chains
    said = chains.copy()
    for chain_id, members in chains.items():
        if not _CHAIN_ID.match(chain_id):
            raise ConfigError(f"chains.{chain_id}", "a chain is named by its id, a number above zero")
        if int(chain_id) in DEVNET_CHAINS and isinstance(members, dict):
            said[chain_id] = {"rfq": True, "handlers": ["*"]} | members
        elif isinstance(members, dict) and members.get("wallet_url"):
            chains_text = " and ".join(map(str, DEVNET_CHAINS))
            raise ConfigError(f"chains.{chain_id}.wallet_url", f"is for development chains: {chains_text}")
    return _with_shipped(said, SHIPPED_CHAINS)


def _with_shipped(entries: object, shipped: Mapping[Any, msgspec.Struct]) -> object:
    """Merge the shipped entries of a settings table with the entries of the operator's file."""
    if not isinstance(entries, dict):
        return entries
    merged: dict[str, Any] = {str(key): msgspec.structs.asdict(entry) for key, entry in shipped.items()}
    for key, said in entries.items():
        merged[key] = merged.get(key, {}) | said if isinstance(said, dict) else said
    return merged


def _refusal(tree: dict[str, Any], convert: Any, error: msgspec.ValidationError) -> ConfigError:
    """Make the ConfigError for refused settings, with the full path of the setting at fault.

    The path in msgspec's error has `[...]` in place of each key of a table; the function finds these keys.

    Args:
        tree: the refused settings.
        convert: function from `tree` to typed settings, which refused `tree`.
        error: the error that `convert` raised.
    """
    text, _, where = str(error).partition(" - at `")
    path: list[str] = []
    trial = tree
    for part in _PATH_PART.findall(where.partition("$")[2]):
        if part == "[...]":
            path.append(_culprit(trial, path, convert, str(error)))
            trial = _only(trial, path[:-1], path[-1])
        else:
            path.append(part)
    unknown = _UNKNOWN_KEY.match(text)
    if unknown:
        alike = get_close_matches(unknown["key"], _keys_at(path), 1)
        hint = f": did you mean {_dotted([*path, alike[0]])}?" if alike else ""
        return ConfigError(_dotted([*path, unknown["key"]]), f"is not a setting{hint}")
    return ConfigError(_dotted(path) or "settings", text[:1].lower() + text[1:])


def _keys_at(path: Sequence[str]) -> list[str]:
    """List the keys of the settings table at a path; empty if the path leads to no such table."""
    kind = msgspec.inspect.type_info(Settings)
    for part in path:
        kind = _table_kind(kind)
        if isinstance(kind, msgspec.inspect.StructType):
            members = {field.encode_name: field.type for field in kind.fields}
            kind = members.get(part, kind)
        elif isinstance(kind, msgspec.inspect.DictType):
            kind = kind.value_type
        elif isinstance(kind, msgspec.inspect.VarTupleType | msgspec.inspect.ListType):
            kind = kind.item_type
    kind = _table_kind(kind)
    fields = kind.fields if isinstance(kind, msgspec.inspect.StructType) else ()
    return [field.encode_name for field in fields]


def _table_kind(kind: msgspec.inspect.Type) -> msgspec.inspect.Type:
    """Strip None from the type of an optional value: `X | None` gives `X`; other types stay as they are."""
    if isinstance(kind, msgspec.inspect.UnionType):
        return next(member for member in kind.types if not isinstance(member, msgspec.inspect.NoneType))
    return kind


def _dotted(path: list[str]) -> str:
    return ".".join(path).replace(".[", "[")


def _culprit(tree: dict[str, Any], path: list[str], convert: Any, refused: str) -> str:
    """Find the key at fault in the table at `path`.

    The function tries each key alone in the table: the key at fault gives the error text `refused`.
    """
    table: Any = tree
    for key in path:
        table = table[key] if isinstance(table, dict) else {}
    for key in table:
        try:
            convert(_only(tree, path, key))
        except msgspec.ValidationError as error:
            if str(error) == refused:
                return str(key)
    return "[...]"


def _only(tree: dict[str, Any], path: list[str], key: str) -> dict[str, Any]:
    """Copy the settings tree, with no key but `key` left in the table at `path`."""
    if not path:
        return {key: tree[key]} if key in tree else tree
    return {**tree, path[0]: _only(tree[path[0]], path[1:], key)}


def _check(settings: Settings) -> None:
    """Check the rules between settings that their types cannot express; raises ConfigError."""
    try:
        Path(settings.state_dir).expanduser()
    except RuntimeError as error:
        raise ConfigError("state_dir", str(error)) from None
    for chain_id, chain in settings.chains.items():
        for name in ADDRESS_SETTINGS:
            address = getattr(chain, name)
            if address:
                _check_address(f"chains.{chain_id}.{name}", address)
        if chain.confirmations < 1:
            raise ConfigError(f"chains.{chain_id}.confirmations", f"at least 1, got {chain.confirmations}")
        if chain.cctp_domain is not None and not 0 <= chain.cctp_domain <= limits.CCTP_DOMAIN_MAX:
            raise ConfigError(
                f"chains.{chain_id}.cctp_domain", f"0 to {limits.CCTP_DOMAIN_MAX}, got {chain.cctp_domain}"
            )
        _check_strategies(f"chains.{chain_id}.strategies", chain)
        for at, handler in enumerate(chain.handlers):
            if handler != "*":
                _check_address(f"chains.{chain_id}.handlers[{at}]", handler)
    _check_relayers(settings)
    _check_tokens(settings)
    _check_bridges(settings)
    _check_partners(settings)
    _check_webhooks(settings)
    _check_auth(settings)


def _check_auth(settings: Settings) -> None:
    prefix = settings.auth.strip_prefix
    if prefix and (not prefix.startswith("/") or prefix.endswith("/")):
        raise ConfigError(
            "auth.strip_prefix", f"expected /path without a slash at its end, got {shown(prefix)}"
        )
    if settings.auth.replay_window and settings.server.processes > 1:
        raise ConfigError(
            "auth.replay_window",
            "needs server.processes = 1: a process knows no signatures that another one has taken",
        )
    for name, domain in settings.auth.domains.items():
        if not 1 <= len(domain.keys) <= limits.AUTH_KEYS_PER_DOMAIN_MAX:
            raise ConfigError(
                f"auth.domains.{name}.keys", f"1 to {limits.AUTH_KEYS_PER_DOMAIN_MAX}, got {len(domain.keys)}"
            )


def _check_strategies(field: str, chain: ChainSettings) -> None:
    if len(chain.strategies) > limits.STRATEGIES_MAX:
        raise ConfigError(field, f"at most {limits.STRATEGIES_MAX}, got {len(chain.strategies)}")
    seen: set[str] = set()
    for at, strategy in enumerate(chain.strategies):
        _check_address(f"{field}[{at}].vault", strategy.vault)
        if strategy.vault.lower() in seen:
            raise ConfigError(f"{field}[{at}].vault", "is already listed")
        seen.add(strategy.vault.lower())
        if not 0 <= strategy.fee_bps < limits.BPS_ONE:
            raise ConfigError(f"{field}[{at}].fee_bps", f"0 to {limits.BPS_ONE - 1}, got {strategy.fee_bps}")


def _check_partners(settings: Settings) -> None:
    for name, partner in settings.partners.items():
        _check_address(f"partners.{name}.address", partner.address)
        if partner.tier != "default" and partner.tier not in settings.tiers:
            raise ConfigError(f"partners.{name}.tier", f"unknown tier {partner.tier!r}")
        most = settings.tiers.get(partner.tier, DEFAULT_TIER).fee_bps_max
        if partner.fee_bps > most:
            raise ConfigError(
                f"partners.{name}.fee_bps", f"its tier allows at most {most}, got {partner.fee_bps}"
            )
    for name, key in settings.venue.api_keys.items() if settings.venue else ():
        if key.partner not in ("", ANON, *settings.partners):
            raise ConfigError(f"venue.api_keys.{name}.partner", f"unknown partner {key.partner!r}")


def _check_webhooks(settings: Settings) -> None:
    for name, hook in settings.venue.webhooks.items() if settings.venue else ():
        if hook.partner not in ("", ANON, *settings.partners):
            raise ConfigError(f"venue.webhooks.{name}.partner", f"unknown partner {shown(hook.partner)}")
        for chain_id in hook.chains:
            if chain_id not in settings.chains:
                raise ConfigError(f"venue.webhooks.{name}.chains", f"unknown chain {chain_id}")


def _check_address(field: str, text: str) -> None:
    """Refuse a setting that is no address, or is an address without a key: zero or native placeholder."""
    if not _ADDRESS.match(text) or int(text, 16) == 0 or text.lower() == limits.NATIVE_PLACEHOLDER.lower():
        raise ConfigError(
            field, f"expected an address, neither zero nor the native placeholder, got {shown(text)}"
        )


def _check_relayers(settings: Settings) -> None:
    for chain_id, relayer in settings.relayers.items():
        if chain_id not in settings.chains:
            raise ConfigError(f"relayers.{chain_id}", f"unknown chain {chain_id}")
        if relayer.key not in settings.keys:
            raise ConfigError(f"relayers.{chain_id}.key", f"unknown key {shown(relayer.key)}")


def _check_tokens(settings: Settings) -> None:
    seen: set[tuple[int, str]] = set()
    for at, token in enumerate(settings.tokens):
        if token.chain_id not in settings.chains:
            raise ConfigError(f"tokens[{at}].chain_id", f"unknown chain {token.chain_id}")
        _check_address(f"tokens[{at}].address", token.address)
        for key in (token.address.lower(), token.symbol):
            if (token.chain_id, key) in seen:
                raise ConfigError(f"tokens[{at}]", f"{key} is already listed on chain {token.chain_id}")
            seen.add((token.chain_id, key))


def _check_bridges(settings: Settings) -> None:
    """Check that bridges carry listed tokens, and that the chains of bridges have the necessary settings."""
    listed = {(token.chain_id, token.address.lower()): token for token in settings.tokens}
    for name, bridge in settings.bridges.items():
        if not name or len(name) > limits.NAME_CHARS_MAX or "," in name:
            raise ConfigError("bridges", "the name of a bridge is 1 to 128 characters without a comma")
        for at, token in enumerate(bridge.tokens):
            field = f"bridges.{name}.tokens[{at}].chains"
            decimals = set()
            for chain_id, address in token.chains.items():
                chain = settings.chains.get(chain_id)
                if chain is None:
                    raise ConfigError(f"{field}.{chain_id}", "unknown chain")
                _check_address(f"{field}.{chain_id}", address)
                known = listed.get((chain_id, address.lower()))
                if known is None:
                    raise ConfigError(f"{field}.{chain_id}", f"{address} is not in [[tokens]]")
                if bridge.kind == "cctp" and chain.cctp_domain is None:
                    raise ConfigError(
                        f"chains.{chain_id}.cctp_domain", f"is not set; bridges.{name} needs it"
                    )
                decimals.add(known.decimals)
            if bridge.kind == "cctp" and len(decimals) > 1:
                raise ConfigError(field, "CCTP carries tokens of the same decimals alone")
            # Not empty: `BridgedToken` has two chains or more.
            if max(decimals) - min(decimals) > limits.BRIDGE_SCALING_MAX:
                raise ConfigError(field, f"decimals differ by at most {limits.BRIDGE_SCALING_MAX}")
