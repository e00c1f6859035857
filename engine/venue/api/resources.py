"""What there is: chains, tokens, balances, contracts, sources, partner fees, the documents.

Everything that the settings decide is encoded once, at the start.

Source: interop.md 3; choices.md 4, 6 and 15.
Choice: `/adapters/...` without `network` and `chainId` is about chain 1, as /prices is; `version` changes
    nothing.
Choice: `tokens` begins with the native token, where the chain has a wrapped form of it. A token whose
    contract does not answer with a balance is left out of a user's tokens.
Choice: `takeSurplus` of a partner fee is false: a partner shares in the surplus where a request says so.
"""

from collections.abc import Callable
from decimal import Decimal
from functools import partial

from ....codecs.calldata import balance_of
from ....codecs.delta_messages import ZERO_ADDRESS_TEXT
from ....codecs.resource_messages import (
    AdaptersContracts,
    AdaptersQuery,
    ChainEntry,
    ChainList,
    ContractsDocument,
    ContractTakers,
    ErrorsDocument,
    PartnerFee,
    PartnerFeeQuery,
    TokenEntry,
    TokenList,
    UserToken,
    UserTokens,
    decode_adapters_query,
    decode_partner_fee_query,
)
from ....codecs.trading_token import NATIVE_TOKEN
from ....codecs.wire import encode
from ....config.catalogue import contracts_document, errors_document
from ....config.errors import BlockGone, InvalidInput
from ....config.limits import NETWORK_DEFAULT
from ....config.partners import resolve_fee
from ....config.settings import Settings
from ....crypto.addresses import parse_address, to_checksum
from ...chain.port import Call as ContractCall
from ...routing.tokens import ListedToken
from ...server.routing import Call, Reply
from ..place import Place, Places, place_at
from .routes import Endpoint

_WORD_BYTES = 32
_CHAIN_DIGITS_MAX = 16
_row = partial(Endpoint, method="GET", group="Resources")


def chain_in_path(text: str) -> int:
    """A path's `{chainId}`.

    Raises:
        InvalidInput: no chain id.
    """
    if not (text.isascii() and text.isdigit() and len(text) <= _CHAIN_DIGITS_MAX):
        raise InvalidInput(field="chainId", expected="a chain id", got=text)
    return int(text)


def place_in_path(places: Places, text: str) -> Place:
    """As `place_at`, of a path's `{chainId}`."""
    return place_at(places, chain_in_path(text), "chainId")


class Resources:
    """The endpoints that tell what there is.

    Args:
        places: by chain id.
        settings: of the partners.
    """

    def __init__(self, places: Places, settings: Settings) -> None:
        self._places = places
        self._partners, self._tiers = settings.partners, settings.tiers
        self._tokens = {chain_id: encode(_token_list(place)) for chain_id, place in places.items()}

    def endpoints(self) -> tuple[Endpoint, ...]:
        """The rows of the table."""
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
                summary="The listed tokens with a user's balances, of one block",
                answer=UserTokens,
            ),
            _row(
                path="/prices/partnerfee/{chainId}",
                plain=self._partner_fee,
                summary="What a partner's requests pay",
                query=PartnerFeeQuery,
                answer=PartnerFee,
            ),
        )

    def _of_sources(self) -> tuple[Endpoint, ...]:
        asked = partial(_row, query=AdaptersQuery)
        return (
            asked(
                path="/adapters/contracts",
                plain=self._contracts,
                summary="The contracts of a chain, under the names that clients know",
                answer=AdaptersContracts,
            ),
            asked(
                path="/adapters/list",
                plain=self._sources,
                summary="The names of the sources of a chain: what includeDEXS and excludeDEXS may hold",
                answer=tuple[str, ...],
            ),
            asked(
                path="/adapters/contract-takers",
                plain=self._takers,
                cost=0,
                summary="Who fills firm quotes: the takers that makers sign for",
                answer=ContractTakers,
            ),
        )

    def _documents(self) -> tuple[Endpoint, ...]:
        places = self._places
        contracts = contracts_document(
            {chain_id: at.settings for chain_id, at in places.items()},
            {chain_id: _roles(at) for chain_id, at in places.items()},
        )
        fixed = partial(_row, cost=0)
        return (
            fixed(
                path="/chains",
                plain=_fixed(encode(_chain_list(places))),
                summary="The chains that are served, and as what",
                answer=ChainList,
            ),
            fixed(
                path="/resources/contracts.json",
                plain=_fixed(encode(contracts)),
                summary="Contract addresses by chain, and what is served there",
                answer=ContractsDocument,
            ),
            fixed(
                path="/resources/errors.json",
                plain=_fixed(encode(errors_document())),
                summary="Every error: what it means and what to do",
                answer=ErrorsDocument,
            ),
        )

    def _list_tokens(self, call: Call) -> Reply:
        place = place_in_path(self._places, call.parameters[0])
        return Reply(200, self._tokens[place.chain_id])

    async def _user_tokens(self, call: Call) -> Reply:
        place = place_in_path(self._places, call.parameters[0])
        user = parse_address(call.parameters[1], "user")
        return Reply(200, encode(await user_tokens(place, user)))

    def _contracts(self, call: Call) -> Reply:
        place = self._asked(call)
        return Reply(
            200,
            encode(
                AdaptersContracts(
                    router=_text(place.router),
                    token_transfer_proxy=_text(place.router),
                    rfq=_text(place.rfq),
                    delta=_text(place.delta),
                    executors={"RfqExecutor": _text(place.executor)},
                )
            ),
        )

    def _sources(self, call: Call) -> Reply:
        return Reply(200, encode(sorted(self._asked(call).feeds)))

    def _takers(self, call: Call) -> Reply:
        place = self._asked(call)
        return Reply(200, encode([to_checksum(place.executor)] if place.executor else []))

    def _partner_fee(self, call: Call) -> Reply:
        place_in_path(self._places, call.parameters[0])
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

    def _asked(self, call: Call) -> Place:
        network = network_of(decode_adapters_query(call.request.query or b""))
        return place_at(self._places, network or NETWORK_DEFAULT, "network")


def network_of(query: AdaptersQuery) -> int | None:
    """The chain that a query names; None for none.

    Raises:
        InvalidInput: it names two.
    """
    if None not in (query.network, query.chain_id) and query.network != query.chain_id:
        raise InvalidInput(
            field="chainId", expected=f"the same as network, {query.network}", got=query.chain_id
        )
    return query.network or query.chain_id


async def user_tokens(place: Place, user: bytes) -> UserTokens:
    """What a user has of each listed token, all at one block.

    Raises:
        ChainError: nobody tells.
    """
    header = await place.chain.block()
    if header is None:
        raise BlockGone("the latest block is not in the chain")
    native = [token for token in place.tokens.by_address.values() if token.address == NATIVE_TOKEN]
    others = [token for token in place.tokens.by_address.values() if token.address != NATIVE_TOKEN]
    found = [(token, await place.chain.balance(user, header.hash)) for token in native]
    calls = [ContractCall(token.address, balance_of(user)) for token in others]
    answers = await place.chain.call_many(calls, header.hash)
    found += [
        (token, int.from_bytes(answer[:_WORD_BYTES], "big"))
        for token, answer in zip(others, answers, strict=True)
        if isinstance(answer, bytes) and len(answer) >= _WORD_BYTES
    ]
    return UserTokens(
        tuple(
            UserToken(token.symbol, token.text, token.decimals, place.chain_id, str(balance))
            for token, balance in found
        )
    )


def _fixed(body: bytes) -> Callable[[Call], Reply]:
    return lambda _: Reply(200, body)


def _chain_list(places: Places) -> ChainList:
    return tuple(
        ChainEntry(chain_id=chain_id, name=place.settings.name, **_roles(place))
        for chain_id, place in sorted(places.items())
    )


def _roles(place: Place) -> dict[str, bool]:
    """Surface -> whether it is served on a chain."""
    return {
        "delta": not place.no_delta,
        "market": place.settings.market,
        "rfq": place.settings.rfq and bool(place.rfq),
    }


def _token_list(place: Place) -> TokenList:
    def entry(token: ListedToken) -> TokenEntry:
        return TokenEntry(token.symbol, token.text, token.decimals, place.chain_id)

    tokens = sorted(place.tokens.by_address.values(), key=lambda token: token.address != NATIVE_TOKEN)
    return TokenList(tuple(map(entry, tokens)))


def _text(address: bytes) -> str:
    return to_checksum(address) if address else ZERO_ADDRESS_TEXT
