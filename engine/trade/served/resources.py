"""GET endpoints of the venue's resources: chains, tokens, balances, contracts, sources, partner fees.

Answers that depend on the settings alone are encoded once, at the start.

GET /fiat/tokens has the tokens of GET /tokens in the form of newer clients; `all` in place of a chain id
covers all chains. `takeSurplus` in the answer on a partner's fee is always false: a partner gets a share of
the surplus only if a request says so.

Source: interop.md 3; choices.md#requests-and-errors, choices.md#firm-quotes.
Choice: `delta` and `market` of GET /chains are true while the chain has live books.
Choice: `/adapters/...` without `network` and `chainId` covers chain 1, as GET /prices does; `version` changes
    nothing.
Choice: `tokens` starts with the native token where the chain has a wrapped form. A token whose contract gives
    no balance is left out of a user's tokens.
Choice: The native token's `allowance` is 2^256 - 1. Another token's `allowance` is 0 if its contract gives
    none, or the chain has no Router.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import partial

from msgspec import UNSET

from ....codecs.contracts.calldata import allowance, balance_of
from ....codecs.messages.delta_messages import ZERO_ADDRESS_TEXT
from ....codecs.messages.resource_messages import (
    AdaptersContracts,
    AdaptersQuery,
    CategoryEntry,
    CategoryList,
    ChainEntry,
    ChainList,
    ContractsDocument,
    ContractTakers,
    ErrorsDocument,
    FiatTokenEntry,
    FiatTokenList,
    FiatTokensQuery,
    OneUserToken,
    PartnerFee,
    PartnerFeeQuery,
    TokenCategory,
    TokenEntry,
    TokenList,
    UserToken,
    UserTokens,
    decode_adapters_query,
    decode_fiat_tokens_query,
    decode_partner_fee_query,
)
from ....codecs.messages.wire import encode
from ....codecs.trading_token import NATIVE_TOKEN
from ....config.catalogue import contracts_document, errors_document
from ....config.errors import BlockGone, TokenNotSupported
from ....config.limits import NETWORK_DEFAULT, UINT256_MAX
from ....config.sections.partners import resolve_fee
from ....config.settings import Settings
from ....crypto.addresses import parse_address, to_checksum
from ...chain.port import EthCall
from ...host.server.routing import HttpCall, Reply
from ..api.chain_parameter import chain_in_path, network_of
from ..api.routes import Endpoint
from ..routing.tokens import ListedToken
from .served_chain import ServedChain, ServedChains, served_chain_at

_WORD_BYTES = 32
_CATEGORIES = CategoryList(
    (
        CategoryEntry(TokenCategory.STABLECOIN, "US dollar stablecoins"),
        CategoryEntry(TokenCategory.NATIVE, "Native and wrapped native tokens"),
    )
)
_row = partial(Endpoint, method="GET", group="Resources")


def place_in_path(chains: ServedChains, text: str) -> ServedChain:
    """Return the served chain that the `{chainId}` of a request's path names.

    Args:
        text: the chain id, as text.

    Raises:
        RequestError: the text is no chain id, or the venue does not serve the chain.
    """
    return served_chain_at(chains, chain_in_path(text), "chainId")


class Resources:
    """HTTP endpoints of chains, tokens, users' balances, contracts, makers' names and partner fees.

    Args:
        chains: served chains by chain id.
        settings: settings of the venue; their partners and fee tiers are used.
    """

    def __init__(self, chains: ServedChains, settings: Settings) -> None:
        self._chains = chains
        self._partners, self._tiers = settings.partners, settings.tiers
        self._tokens = {chain_id: encode(_token_list([served])) for chain_id, served in chains.items()}
        self._fiat_tokens = {chain_id: _fiat_tokens([served]) for chain_id, served in chains.items()}
        self._all_fiat_tokens = _fiat_tokens(chains.values())

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the HTTP endpoints of the class as rows of the route table."""
        return (*self._of_tokens(), *self._of_sources(), *self._documents())

    def _of_tokens(self) -> tuple[Endpoint, ...]:
        return (
            _row(
                path="/tokens/{chainId}",
                plain=self._list_tokens,
                summary="The tokens that may be traded on a chain",
                answer=TokenList,
            ),
            _row(
                path="/users/tokens/{chainId}/{user}",
                coroutine=self._user_tokens,
                cost=5,
                summary="A user's balances of the listed tokens, and allowances for the Router, at one block",
                answer=UserTokens,
            ),
            _row(
                path="/users/tokens/{chainId}/{user}/{token}",
                coroutine=self._user_token,
                cost=5,
                summary="A user's balance and allowance of a token, by address or symbol",
                answer=OneUserToken,
            ),
            _row(
                path="/fiat/tokens/{chainId}",
                plain=self._list_fiat_tokens,
                summary="The tokens that may be traded on a chain, with names, pictures and categories",
                query=FiatTokensQuery,
                answer=FiatTokenList,
            ),
            _row(
                path="/fiat/tokens/all",
                plain=self._list_all_fiat_tokens,
                summary="The tokens of all chains, with names, pictures and categories",
                query=FiatTokensQuery,
                answer=FiatTokenList,
            ),
            _row(
                path="/fiat/tokens/categories",
                plain=_fixed(encode(_CATEGORIES)),
                summary="The categories of tokens, for `category` of the lists",
                answer=CategoryList,
            ),
            _row(
                path="/prices/partnerfee/{chainId}",
                plain=self._partner_fee,
                summary="Fee on a partner's requests",
                query=PartnerFeeQuery,
                answer=PartnerFee,
            ),
        )

    def _of_sources(self) -> tuple[Endpoint, ...]:
        adapters_row = partial(_row, query=AdaptersQuery)
        return (
            adapters_row(
                path="/adapters/contracts",
                plain=self._contracts,
                summary="The contracts of a chain, under the names that clients know",
                answer=AdaptersContracts,
            ),
            adapters_row(
                path="/adapters/list",
                plain=self._sources,
                summary="The names of a chain's sources, for includeDEXS and excludeDEXS",
                answer=tuple[str, ...],
            ),
            adapters_row(
                path="/adapters/contract-takers",
                plain=self._takers,
                cost=0,
                summary="Takers of firm quotes: the accounts that makers sign for",
                answer=ContractTakers,
            ),
        )

    def _documents(self) -> tuple[Endpoint, ...]:
        chains = self._chains
        contracts = contracts_document(
            {chain_id: at.settings for chain_id, at in chains.items()},
            {chain_id: _roles(at) for chain_id, at in chains.items()},
        )
        fixed = partial(_row, cost=0)
        return (
            fixed(
                path="/chains",
                plain=lambda _: Reply(200, encode(_chain_list(chains))),
                summary="The served chains, and the kinds of trade on each",
                answer=ChainList,
            ),
            fixed(
                path="/resources/contracts.json",
                plain=_fixed(encode(contracts)),
                summary="Contract addresses by chain, and the kinds of trade that are served there",
                answer=ContractsDocument,
            ),
            fixed(
                path="/resources/errors.json",
                plain=_fixed(encode(errors_document())),
                summary="Every error, with its cause and fix",
                answer=ErrorsDocument,
            ),
        )

    def _list_tokens(self, call: HttpCall) -> Reply:
        served = place_in_path(self._chains, call.parameters[0])
        return Reply(200, self._tokens[served.chain_id])

    def _list_fiat_tokens(self, call: HttpCall) -> Reply:
        served = place_in_path(self._chains, call.parameters[0])
        return _of_category(call, self._fiat_tokens[served.chain_id])

    def _list_all_fiat_tokens(self, call: HttpCall) -> Reply:
        return _of_category(call, self._all_fiat_tokens)

    async def _user_tokens(self, call: HttpCall) -> Reply:
        served = place_in_path(self._chains, call.parameters[0])
        user = parse_address(call.parameters[1], "user")
        return Reply(
            200, encode(UserTokens(await user_tokens(served, user, served.tokens.by_address.values())))
        )

    async def _user_token(self, call: HttpCall) -> Reply:
        chain, named, text = call.parameters
        served = place_in_path(self._chains, chain)
        user, token = parse_address(named, "user"), served.tokens.listed(text, "token")
        found = await user_tokens(served, user, [token])
        if not found:
            raise TokenNotSupported("its contract answers balanceOf with no number", field="token", got=text)
        return Reply(200, encode(OneUserToken(*found)))

    def _contracts(self, call: HttpCall) -> Reply:
        served = self._served(call)
        return Reply(
            200,
            encode(
                AdaptersContracts(
                    router=_text(served.router),
                    token_transfer_proxy=_text(served.router),
                    rfq=_text(served.rfq),
                    delta=_text(served.delta),
                    executors={"RfqExecutor": _text(served.executor)},
                )
            ),
        )

    def _sources(self, call: HttpCall) -> Reply:
        return Reply(200, encode(sorted(self._served(call).feeds)))

    def _takers(self, call: HttpCall) -> Reply:
        served = self._served(call)
        return Reply(200, encode([to_checksum(served.executor)] if served.executor else []))

    def _partner_fee(self, call: HttpCall) -> Reply:
        place_in_path(self._chains, call.parameters[0])
        query = decode_partner_fee_query(call.request.query or b"")
        fee = resolve_fee(query.partner, None, self._partners, self._tiers)
        return Reply(
            200,
            encode(
                PartnerFee(
                    Decimal(fee.fee_bps) / 100,
                    _text(parse_address(fee.address)) if fee.address else ZERO_ADDRESS_TEXT,
                    take_surplus=False,
                )
            ),
        )

    def _served(self, call: HttpCall) -> ServedChain:
        network = network_of(decode_adapters_query(call.request.query or b""))
        return served_chain_at(self._chains, network or NETWORK_DEFAULT, "network")


async def user_tokens(
    served: ServedChain, user: bytes, tokens: Iterable[ListedToken]
) -> tuple[UserToken, ...]:
    """Read a user's balances of tokens and allowances for the Router, all at one block.

    Args:
        user: the account, 20 bytes.

    Returns:
        An entry for each token, the native token first. A token is left out if its contract does not answer
        `balanceOf` with a number.

    Raises:
        ChainError: no node answers.
    """
    header = await served.chain.block()
    if header is None:
        raise BlockGone("the latest block is not in the chain")
    listed = sorted(tokens, key=lambda token: token.address != NATIVE_TOKEN)
    others = [token for token in listed if token.address != NATIVE_TOKEN]
    found = [
        _user_token(served, token, await served.chain.balance(user, header.hash), UINT256_MAX)
        for token in listed[: len(listed) - len(others)]
    ]
    calls = [EthCall(token.address, balance_of(user)) for token in others]
    if served.router:
        calls += [EthCall(token.address, allowance(user, served.router)) for token in others]
    answers = (
        [_amount(answer) for answer in await served.chain.call_many(calls, header.hash)] if calls else []
    )
    # Without a Router, no allowances were read: each is None, and shown as 0.
    balances, allowed = answers[: len(others)], answers[len(others) :] or [None] * len(others)
    found += [
        _user_token(served, token, balance, taken or 0)
        for token, balance, taken in zip(others, balances, allowed, strict=True)
        if balance is not None
    ]
    return tuple(found)


def _amount(answer: bytes | Exception) -> int | None:
    """Decode the number in a contract's answer; None for an error or an answer without a number."""
    if isinstance(answer, bytes) and len(answer) >= _WORD_BYTES:
        return int.from_bytes(answer[:_WORD_BYTES], "big")
    return None


def _user_token(served: ServedChain, token: ListedToken, balance: int, allowed: int) -> UserToken:
    return UserToken(token.symbol, token.text, token.decimals, served.chain_id, str(balance), str(allowed))


def _fixed(body: bytes) -> Callable[[HttpCall], Reply]:
    return lambda _: Reply(200, body)


def _chain_list(chains: ServedChains) -> ChainList:
    """List the chains with the kinds of trade that are quoted now: without live books none but OTC orders."""
    return tuple(
        ChainEntry(
            chain_id=chain_id,
            name=served.settings.name,
            wallet_url=served.settings.wallet_url or UNSET,
            explorer_url=served.settings.explorer_url or None,
            **_roles(served) | ({} if any(served.index.books()) else {"delta": False, "market": False}),
        )
        for chain_id, served in sorted(chains.items())
    )


def _roles(served: ServedChain) -> dict[str, bool]:
    """Return kind of trade (`delta`, `market`, `rfq`) -> whether the venue serves this kind on a chain."""
    return {
        "delta": not served.no_delta,
        "market": served.settings.market,
        "rfq": served.settings.rfq and bool(served.rfq),
    }


def _token_list(chains: Iterable[ServedChain]) -> TokenList:
    """List the tokens that may be traded on some chains."""
    return TokenList(
        tuple(
            TokenEntry(token.symbol, token.text, token.decimals, served.chain_id)
            for served, token in _tokens(chains)
        )
    )


def _tokens(chains: Iterable[ServedChain]) -> Iterator[tuple[ServedChain, ListedToken]]:
    """Yield the tokens of chains, by chain id, each chain's native token first."""
    for served in sorted(chains, key=lambda served: served.chain_id):
        tokens = served.tokens.by_address.values()
        for token in sorted(tokens, key=lambda token: token.address != NATIVE_TOKEN):
            yield served, token


def _of_category(call: HttpCall, bodies: Mapping[TokenCategory | None, bytes]) -> Reply:
    return Reply(200, bodies[decode_fiat_tokens_query(call.request.query or b"").category])


def _fiat_tokens(chains: Iterable[ServedChain]) -> dict[TokenCategory | None, bytes]:
    """Encode the tokens of some chains: all under None, and those of each category."""
    entries = [
        FiatTokenEntry(
            chain_id=served.chain_id,
            address=token.text,
            name=(token.listed.name if token.listed else "") or token.symbol,
            symbol=token.symbol,
            decimals=token.decimals,
            logo=(token.listed.logo_uri if token.listed else "") or UNSET,
            categories=_categories(served, token),
        )
        for served, token in _tokens(chains)
    ]
    return {
        category: encode(
            FiatTokenList(
                tuple(entry for entry in entries if category is None or category in entry.categories)
            )
        )
        for category in (None, *TokenCategory)
    }


def _categories(served: ServedChain, token: ListedToken) -> tuple[TokenCategory, ...]:
    is_stable = token.listed is not None and token.listed.stable_usd
    is_native = token.routed == served.tokens.wrapped_native
    found = {TokenCategory.STABLECOIN: is_stable, TokenCategory.NATIVE: is_native}
    return tuple([category for category, applies in found.items() if applies])


def _text(address: bytes) -> str:
    return to_checksum(address) if address else ZERO_ADDRESS_TEXT
