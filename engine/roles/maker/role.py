"""A chain of a market maker, put together from settings.

Every fault in the settings raises a ConfigError that names the setting.
"""

from collections.abc import Callable, Mapping

import msgspec

from ....codecs.amounts import parse_units
from ....codecs.eip712_orders.rfq import rfq_domain_separator
from ....codecs.messages.maker_messages import Pair, Token
from ....codecs.messages.vocabulary import TokenType
from ....config.error_text import shown
from ....config.errors import ConfigError, InvalidInput
from ....config.sections.maker import MakerChain, MakerPair, MakerSettings, MakerToken
from ....config.settings import Settings
from ....crypto.addresses import ZERO_ADDRESS, checked_address
from ....crypto.custody.signing_policy import PolicedKey
from .quoting.blacklist import Blacklist
from .quoting.board import Board, PairState
from .quoting.funds import UNKNOWN
from .quoting.ledger import Exposure, MakerHolding, QuoteLedger
from .quoting.quotes import Desk, PairDirection, Signer
from .stream import Broadcast


class ChainRole(msgspec.Struct, frozen=True):
    """All objects of a market maker on one chain.

    Attributes:
        field: dotted name of the chain's settings, for errors.
        settings: the chain's part of the settings.
        caps: token -> most raw units of the maker's balance to use for quotes; without a node to read
            balances from, the cap counts as the balance.
        fixed_takers: contracts that the settings allow to fill quotes.
    """

    chain_id: int
    field: str
    settings: MakerChain
    board: Board
    desk: Desk
    blacklist: Blacklist
    broadcast: Broadcast
    holdings: tuple[MakerHolding, ...]
    caps: dict[bytes, int]
    fixed_takers: tuple[bytes, ...]
    signer: Signer


def build_chain(
    settings: Settings,
    maker: MakerSettings,
    chain_id: int,
    keys: Mapping[str, PolicedKey],
    random96: Callable[[], bytes],
    share: int,
) -> ChainRole:
    """Build a market maker's objects for one chain from the settings.

    Args:
        maker: the `[maker]` part of `settings`.
        keys: name -> key of `[keys]`.
        random96: returns 12 unpredictable bytes per call.
        share: number of maker processes, which divide funds and bounds equally.
    """
    chain = maker.chains[chain_id]
    field = f"maker.chains.{chain_id}"
    signer = _signer(settings, chain_id, chain, field, keys)
    addresses = _token_addresses(chain, field)
    holdings, caps = _holdings(chain, field, addresses, share)
    states = {
        pair_id: PairState(
            pair_id,
            chain.tokens[pair.base].decimals,
            chain.tokens[pair.quote].decimals,
            _exposure(pair, chain.tokens[pair.quote], f"{field}.pairs.{pair_id}", share),
            retired=pair.retired,
        )
        for pair_id, pair in chain.pairs.items()
    }
    board = Board(
        {token_id: _token(token_id, token, addresses[token_id]) for token_id, token in chain.tokens.items()},
        {pair_id: Pair(pair.base, pair.quote, pair.liquidity_usd) for pair_id, pair in chain.pairs.items()},
        states.values(),
        price_life_ms=chain.price_life_ms,
        message=chain.message,
    )
    blacklist = Blacklist(_address(text, f"{field}.blacklist") for text in chain.blacklist)
    takers = tuple(_address(text, f"{field}.takers") for text in chain.takers)
    if not takers and not chain.takers_url:
        raise ConfigError(
            f"{field}.takers", "names no taker, and takers_url is not set: no quote could be given"
        )
    desk = Desk(
        signer=signer,
        board=board,
        markets=_markets(chain, field, states, addresses, holdings),
        ledger=QuoteLedger(
            # At least 1: a share of 0 live quotes would refuse all, and 0 unused quotes means no bound.
            live_max=max(1, chain.live_quotes_max // share),
            unused_max=max(1, chain.unused_quotes_max // share) if chain.unused_quotes_max else 0,
            unused_window_s=chain.unused_window_s,
        ),
        blacklist=blacklist,
        takers=takers,
        expiry_s=chain.expiry_s,
        unused_blacklist_s=chain.blacklist_s,
        random96=random96,
        message=chain.message,
    )
    if chain.node_url:  # until `MakerFunds` has read the funds
        desk.withhold("funds", UNKNOWN)
    return ChainRole(
        chain_id=chain_id,
        field=field,
        settings=chain,
        board=board,
        desk=desk,
        blacklist=blacklist,
        broadcast=Broadcast(),
        holdings=tuple(holdings.values()),
        caps=caps,
        fixed_takers=takers,
        signer=signer,
    )


def _signer(
    settings: Settings, chain_id: int, chain: MakerChain, field: str, keys: Mapping[str, PolicedKey]
) -> Signer:
    deployed = settings.chains.get(chain_id)
    if deployed is None:
        raise ConfigError(field, f"unknown chain {chain_id} in [chains]")
    if not deployed.rfq_contract:
        raise ConfigError(f"chains.{chain_id}.rfq_contract", "is not set: firm quotes need it")
    key = keys.get(chain.key)
    if key is None:
        raise ConfigError(f"{field}.key", f"unknown key {chain.key!r} in [keys]")
    contract = _address(deployed.rfq_contract, f"chains.{chain_id}.rfq_contract")
    # The key's policy is tried now: with a gap in it, every quote would fail.
    if (chain_id, contract) not in key.policy.contracts:
        raise ConfigError(f"keys.{chain.key}.policy.contracts", f"lacks {chain_id}:{deployed.rfq_contract}")
    if key.policy.amounts_max is not None:
        for token_id, token in chain.tokens.items():
            if (
                chain_id,
                _address(token.address, f"{field}.tokens.{token_id}.address"),
            ) not in key.policy.amounts_max:
                raise ConfigError(f"keys.{chain.key}.policy.amounts_max", f"lacks {chain_id}:{token.address}")
    if not key.policy.expiry_min_s <= chain.expiry_s <= key.policy.expiry_max_s:
        raise ConfigError(f"{field}.expiry_s", f"is outside the policy of the key {chain.key}")
    return Signer(
        key,
        chain_id,
        contract,
        rfq_domain_separator(deployed.rfq_domain_name, chain_id, contract),
        _address(chain.maker, f"{field}.maker") if chain.maker else key.address,
    )


def _token_addresses(chain: MakerChain, field: str) -> dict[str, bytes]:
    addresses: dict[str, bytes] = {}
    for token_id, token in chain.tokens.items():
        address = _address(token.address, f"{field}.tokens.{token_id}.address")
        if address in addresses.values():
            raise ConfigError(f"{field}.tokens.{token_id}.address", "is that of another token too")
        addresses[token_id] = address
    return addresses


def _holdings(
    chain: MakerChain, field: str, addresses: Mapping[str, bytes], share: int
) -> tuple[dict[str, MakerHolding], dict[bytes, int]]:
    holdings, caps = {}, {}
    for token_id, token in chain.tokens.items():
        where, address = f"{field}.tokens.{token_id}", addresses[token_id]
        if token.balance:
            caps[address] = _units(token.balance, token.decimals, f"{where}.balance")
        elif not chain.node_url:
            raise ConfigError(f"{where}.balance", "is needed where no node_url tells")
        holdings[token_id] = MakerHolding(
            address,
            0 if chain.node_url else caps[address] // share,
            _units(token.quote_max, token.decimals, f"{where}.quote_max") if token.quote_max else None,
        )
    return holdings, caps


def _markets(
    chain: MakerChain,
    field: str,
    states: Mapping[str, PairState],
    addresses: Mapping[str, bytes],
    holdings: Mapping[str, MakerHolding],
) -> dict[tuple[bytes, bytes], PairDirection]:
    markets: dict[tuple[bytes, bytes], PairDirection] = {}
    for pair_id, pair in chain.pairs.items():
        base, quote = addresses[pair.base], addresses[pair.quote]
        if (base, quote) in markets:
            raise ConfigError(f"{field}.pairs.{pair_id}", "another pair has the same two tokens")
        markets[base, quote] = PairDirection(states[pair_id], holdings[pair.base], quote, gives_base=True)
        markets[quote, base] = PairDirection(states[pair_id], holdings[pair.quote], base, gives_base=False)
    return markets


def _exposure(pair: MakerPair, quote: MakerToken, where: str, share: int) -> Exposure:
    one_max, total = (
        _units(text, quote.decimals, f"{where}.{name}") if text else None
        for name, text in (("notional_max", pair.notional_max), ("open_notional_max", pair.open_notional_max))
    )
    return Exposure(one_max, None if total is None else total // share)


def _token(token_id: str, token: MakerToken, address: bytes) -> Token:
    symbol = token.symbol or token_id
    return Token(
        symbol=symbol,
        name=token.name or symbol,
        description=token.description or f"{symbol}, an ERC-20 token",
        address=f"0x{address.hex()}",
        decimals=token.decimals,
        type=TokenType.ERC20,
    )


def _address(text: str, field: str) -> bytes:
    try:
        address = checked_address(text, field)
    except InvalidInput as error:
        raise ConfigError(field, f"expected {error.expected}, got {shown(text)}") from None
    if address == ZERO_ADDRESS:
        raise ConfigError(field, "is the zero address")
    return address


def _units(text: str, decimals: int, field: str) -> int:
    try:
        return parse_units(text, decimals, field)
    except InvalidInput as error:
        raise ConfigError(field, f"expected {error.expected}, got {shown(text)}") from None
