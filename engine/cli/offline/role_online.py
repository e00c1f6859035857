"""Asks the node, the contracts and the makers of an opened role whether they answer, each within a bound."""

from collections.abc import Mapping
from pathlib import Path

import httpx
import trio
from msgspec import Struct

from ....codecs.amounts import format_units
from ....codecs.contracts.abi import decode_uint
from ....codecs.contracts.calldata import allowance, balance_of
from ....codecs.http1 import Http1Limits
from ....config.errors import CambistError, ChainError
from ....config.sections.maker import MakerToken
from ....config.sections.nodes import NodeSettings, revealed
from ....config.sections.venue import VenueAgent
from ....crypto.addresses import parse_address, to_checksum
from ....feeds.standing import PairStanding
from ....feeds.supervisor import FeedStatistics, MakerFeed
from ....feeds.transport.httpx_transport import DialTransport
from ....feeds.transport.streams import client_tls
from ...chain.artifacts import known_errors
from ...chain.nodes.rpc import RpcChain
from ...chain.port import Chain, EthCall
from ...roles.maker.role import ChainRole

ANSWER_S = 5.0
"""Longest wait for the answers of one chain's node, and of its makers."""
_LOOK_S = 0.05
_LATE = f"no answer within {ANSWER_S:g} s"


class RoleFact(Struct, frozen=True, rename="camel"):
    """A fact about an opened role: a line of the report of `config check`.

    Attributes:
        name: subject, such as `chain 1` or `strategies`.
        text: tokens, pairs, makers or funds of the subject, or its answer.
        is_fault: whether the fact would keep the role from working.
    """

    name: str
    text: str
    is_fault: bool = False


async def chain_answers(chain: Chain, field: str, contracts: Mapping[str, bytes]) -> list[RoleFact]:
    """Report whether a chain's node answers, and each contract that has no code on the chain.

    Args:
        field: path of the chain in the settings, e.g. `chains.1`.
        contracts: name of a contract in the settings -> its address; empty for a contract that is not used.
    """
    facts = []
    try:
        with trio.fail_after(ANSWER_S):
            head = await chain.block()
            facts.append(RoleFact(f"{field}.node", f"answers, at block {head.number if head else 0}"))
            for name, address in contracts.items():
                if address and not await chain.code(address):
                    detail = f"no contract at {to_checksum(address)}"
                    facts.append(RoleFact(f"{field}.{name}", detail, is_fault=True))
    except (ChainError, trio.TooSlowError) as error:
        facts.append(RoleFact(f"{field}.node", str(error) or _LATE, is_fault=True))
    return facts


async def maker_answers(feeds: Mapping[str, MakerFeed], field: str, chain_id: int) -> list[RoleFact]:
    """Follow the makers' prices until all makers are read, or for ANSWER_S seconds; report each maker.

    Args:
        feeds: name of a maker -> feed of its books on the chain, not yet run.
        field: path of the makers in the settings, e.g. `venue.makers`.
    """
    async with trio.open_nursery() as nursery:
        for feed in feeds.values():
            nursery.start_soon(feed.run)
        with trio.move_on_after(ANSWER_S):
            while not all(_is_read(feed.statistics()) for feed in feeds.values()):  # noqa: ASYNC110
                await trio.sleep(_LOOK_S)  # books have no event
        facts = [
            _maker_fact(feed.statistics(), f"{field}.{name}.chains.{chain_id}")
            for name, feed in feeds.items()
        ]
        nursery.cancel_scope.cancel()
    return facts


def _is_read(feed: FeedStatistics) -> bool:
    """Whether the feed has applied answers with a maker's tokens, pairs and prices, and a pair is live."""
    answered = all(feed.polls[resource].answers for resource in ("tokens", "pairs", "prices"))
    return answered and bool(feed.cache.pairs.get(PairStanding.LIVE, 0))


def _maker_fact(feed: FeedStatistics, field: str) -> RoleFact:
    live = feed.cache.pairs.get(PairStanding.LIVE, 0)
    if live:
        return RoleFact(field, f"quotes {live} pairs")
    said = next((f"{resource}: {poll.said}" for resource, poll in feed.polls.items() if poll.in_a_row), "")
    return RoleFact(field, said or "answers, and quotes no pair that is listed here", is_fault=True)


async def agent_answers(agents: Mapping[str, VenueAgent]) -> list[RoleFact]:
    """Report for each of a venue's agents whether it is ready, by its /readyz."""
    facts = []
    transport = DialTransport(tls=client_tls(), connections_max=1, limits=Http1Limits())
    async with httpx.AsyncClient(transport=transport, timeout=ANSWER_S) as client:
        for name, agent in agents.items():
            field = f"venue.agents.{name}"
            try:
                answer = await client.get(f"{agent.url.rstrip('/')}/readyz")
            except httpx.HTTPError as error:
                facts.append(RoleFact(field, f"{type(error).__name__}: {error}", is_fault=True))
                continue
            is_ready = answer.status_code == httpx.codes.OK
            text = "is ready" if is_ready else f"/readyz answers {answer.status_code}"
            facts.append(RoleFact(field, text, is_fault=not is_ready))
    return facts


async def fund_answers(role: ChainRole, environ: Mapping[str, str], folder: Path) -> list[RoleFact]:
    """Report whether a maker's node answers, and the maker's balance and allowance of each token."""
    node = revealed(NodeSettings(urls=(role.settings.node_url,)), role.field, environ, folder)
    async with RpcChain.open(role.chain_id, node, known_errors()) as chain:
        facts = await chain_answers(chain, role.field, {"rfq_contract": role.signer.contract})
        if not any(fact.is_fault for fact in facts):
            for symbol, token in role.settings.tokens.items():
                facts.append(await _token_fact(chain, role, symbol, token))
        return facts


async def _token_fact(chain: Chain, role: ChainRole, symbol: str, token: MakerToken) -> RoleFact:
    field, owner = f"{role.field}.tokens.{symbol}", role.signer.maker
    address = parse_address(token.address, "address")
    calls = [EthCall(address, balance_of(owner)), EthCall(address, allowance(owner, role.signer.contract))]
    try:
        with trio.fail_after(ANSWER_S):
            held, allowed = map(_read, await chain.call_many(calls))
    except (CambistError, trio.TooSlowError) as error:
        return RoleFact(field, str(error) or _LATE, is_fault=True)
    text = f"{format_units(held, token.decimals)} {symbol}"
    if allowed < held:
        spender = to_checksum(role.signer.contract)
        return RoleFact(field, f"{text}, of which {spender} may take less: approve it", is_fault=True)
    return RoleFact(field, f"{text}, approved")


def _read(word: bytes | Exception) -> int:
    if isinstance(word, Exception):
        raise word
    return decode_uint(word)
