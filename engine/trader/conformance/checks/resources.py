"""Judges GET /tokens, /pairs, /prices and /blacklist: each answer as a whole, then every entry.

An empty `prices` object is valid: it disables every pair. Addresses of a blacklist that differ only in upper
and lower case are duplicates.

Source: spec 3.2 to 3.5, 3.7, 3.1.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

from .....config import limits
from ..exchange import HttpExchange, JsonDocument, is_json_type, read_json
from ..rules import Result, Said, fault, judged, passed
from .grids import judge_grid

RESOURCES = ("tokens", "pairs", "prices", "blacklist")
JsonMembers = dict[str, Any]

_is_address = re.compile(r"0[xX][0-9a-fA-F]{40}").fullmatch
_DECIMALS_MAX = limits.TOKEN_DECIMALS_MAX
_TOKEN_KEYS = {"symbol", "name", "description", "address", "decimals", "type"}
_PAIR_KEYS = {"base", "quote", "liquidityUSD"}


def judge_resource(name: str, exchange: HttpExchange) -> Iterator[Result]:
    """Judge an answer as a whole: status, content type, JSON and top-level keys.

    Args:
        name: `tokens`, `pairs`, `prices` or `blacklist`.
        exchange: the GET of this resource.
    """
    where = exchange.where
    yield judged(f"{name}.status", exchange.succeeded, where, "200", exchange.said)
    if not exchange.succeeded:
        return
    label = exchange.headers.get("content-type", "none")
    yield judged(
        f"{name}.content-type", is_json_type(exchange), where, "content-type: application/json", label
    )
    document = read_json(exchange.body)
    if document.fault:
        yield fault(f"{name}.json", where, "a JSON object", Said(f"{document.fault}: {exchange.said}"))
        return
    yield passed(f"{name}.json", where)
    body = document.value
    kind = list if name == "blacklist" else dict
    if not isinstance(body, dict) or not isinstance(body.get(name), kind):
        expected = f"{{{name}: {'[...]' if kind is list else '{...}'}}}"
        yield fault(f"{name}.shape", where, expected, exchange.said)
        return
    yield passed(f"{name}.shape", where)
    yield from _judge_top(name, where, document)


def _judge_top(name: str, where: str, document: JsonDocument) -> Iterator[Result]:
    message = document.value.get("message")
    yield judged("resources.message", message is None or isinstance(message, str), where, "a string", message)
    extra = sorted(document.value.keys() - {name})
    yield judged(
        "resources.one-key", not extra, where, f"no top-level key beside `{name}`", Said(", ".join(extra))
    )
    if name != "blacklist":
        twice = document.duplicates
        yield judged(f"{name}.unique-ids", not twice, where, "each key once", Said(", ".join(twice[:5])))


def entries_of(name: str, exchange: HttpExchange) -> Any:
    """Entries in an answer: the array of GET /blacklist, or the JSON object of another resource.

    The result is None if the answer is no success or has another shape.

    Args:
        name: `tokens`, `pairs`, `prices` or `blacklist`.
    """
    body = read_json(exchange.body).value if exchange.succeeded else None
    content = body.get(name) if isinstance(body, dict) else None
    return content if isinstance(content, list if name == "blacklist" else dict) else None


def judge_tokens(where: str, tokens: Mapping[str, object]) -> Iterator[Result]:
    """Judge every entry of GET /tokens, and whether two entries have the same contract address.

    Args:
        where: name of the answer in findings, such as `GET /tokens`.
        tokens: entries by token id.
    """
    for token_id, token in tokens.items():
        yield from judge_token(f"{where} {token_id}", token)
    addresses = Counter(
        str(token.get("address")).lower() for token in tokens.values() if isinstance(token, dict)
    )
    twice = [address for address, count in addresses.items() if count > 1]
    yield judged(
        "tokens.unique-addresses", not twice, where, "one id per contract", Said(", ".join(twice[:3]))
    )


def judge_token(where: str, token: object) -> Iterator[Result]:
    """Judge an entry of GET /tokens: address, decimals, type, texts and keys.

    Args:
        where: name of the entry in findings.
    """
    if not isinstance(token, dict):
        yield fault("tokens.entry", where, "an object", token)
        return
    yield passed("tokens.entry", where)
    address, decimals = token.get("address"), token.get("decimals")
    yield judged("tokens.address", is_well_formed(address), where, "0x and 40 hexadecimal digits", address)
    held = isinstance(decimals, int) and not isinstance(decimals, bool) and 0 <= decimals <= _DECIMALS_MAX
    yield judged("tokens.decimals", held, where, f"an integer, 0 to {_DECIMALS_MAX}", decimals)
    yield judged("tokens.type", token.get("type") == limits.TOKEN_TYPE, where, "ERC20", token.get("type"))
    for name in ("symbol", "name", "description"):
        text = token.get(name)
        yield judged("tokens.texts", text is None or isinstance(text, str), where, f"{name}: a string", text)
    yield judged("tokens.decimals-zero", decimals != 0, where, "decimals above 0", decimals)
    description = token.get("description")
    yield judged("tokens.description", description, where, "a description that is not empty", description)
    yield _judge_keys("tokens.unknown-keys", where, token, _TOKEN_KEYS)


def judge_pairs(where: str, pairs: Mapping[str, object], tokens: Mapping[str, object]) -> Iterator[Result]:
    """Judge every entry of GET /pairs, and whether two entries have the same two tokens.

    Args:
        where: name of the answer in findings, such as `GET /pairs`.
        pairs, tokens: entries by id.
    """
    markets: dict[tuple[str, str], str] = {}
    for pair_id, pair in pairs.items():
        yield from judge_pair(f"{where} {pair_id}", pair_id, pair, tokens)
        if isinstance(pair, dict):
            base, quote = str(pair.get("base")), str(pair.get("quote"))
            other = markets.get((quote, base)) or markets.get((base, quote))
            expected = "each pair in one direction, once"
            yield judged(
                "pairs.one-direction", not other, f"{where} {pair_id}", expected, Said(f"{other} too")
            )
            markets[base, quote] = pair_id


def judge_pair(where: str, pair_id: str, pair: object, tokens: Mapping[str, object]) -> Iterator[Result]:
    """Judge an entry of GET /pairs: two known tokens, liquidity, id and keys.

    Args:
        where: name of the entry in findings.
        tokens: entries of tokens by token id.
    """
    if not isinstance(pair, dict):
        yield fault("pairs.entry", where, "an object", pair)
        return
    yield passed("pairs.entry", where)
    base, quote = pair.get("base"), pair.get("quote")
    for side, token_id in (("base", base), ("quote", quote)):
        known = isinstance(token_id, str) and token_id in tokens
        yield judged("pairs.known-tokens", known, f"{where} {side}", "an id of /tokens", token_id)
    yield judged("pairs.two-tokens", base != quote, where, "base and quote that differ", base)
    liquidity = pair.get("liquidityUSD")
    yield judged(
        "pairs.liquidity",
        isinstance(liquidity, int | Decimal) and not isinstance(liquidity, bool) and liquidity >= 0,
        where,
        "liquidityUSD: a number, at least 0",
        liquidity,
    )
    yield judged("pairs.id", pair_id == f"{base}/{quote}", where, f"the id {base}/{quote}", pair_id)
    yield _judge_keys("pairs.unknown-keys", where, pair, _PAIR_KEYS)


def judge_prices(where: str, prices: Mapping[str, object], pairs: Mapping[str, object]) -> Iterator[Result]:
    """Judge every grid of GET /prices, whether its pair is listed, and whether each listed pair has a grid.

    Args:
        where: name of the answer in findings, such as `GET /prices`.
        prices, pairs: entries by pair id.
    """
    for pair_id, grid in prices.items():
        yield judged("prices.known-pairs", pair_id in pairs, where, "ids of /pairs", pair_id)
        yield from judge_grid(f"{where} {pair_id}", grid)
    for pair_id in pairs:
        expected = "an entry for every listed pair, {} where it is disabled"
        yield judged("prices.complete", pair_id in prices, where, expected, Said(f"none for {pair_id}"))


def judge_blacklist(where: str, blacklist: list[object]) -> Iterator[Result]:
    """Judge the form of every address of GET /blacklist, and whether an address is repeated.

    Args:
        where: name of the answer in findings, such as `GET /blacklist`.
    """
    yield passed("blacklist.addresses", where)
    seen: set[str] = set()
    yield passed("blacklist.unique", where)
    for at, address in enumerate(blacklist):
        if not is_well_formed(address):
            yield fault("blacklist.addresses", f"{where}[{at}]", "0x and 40 hexadecimal digits", address)
            continue
        lower = str(address).lower()
        if lower in seen:
            yield fault("blacklist.unique", f"{where}[{at}]", "each address once, in any case", address)
        seen.add(lower)


def judge_contents(answers: Mapping[str, HttpExchange]) -> Iterator[Result]:
    """Judge the entries in the answers to GET /tokens, /pairs, /prices and /blacklist.

    Args:
        answers: resource name -> exchange of its GET; an answer without the documented JSON shape is not
            judged.
    """
    content = {name: entries_of(name, exchange) for name, exchange in answers.items()}
    tokens, pairs = content.get("tokens"), content.get("pairs")
    judges: dict[str, Callable[[str, Any], Iterator[Result]]] = {
        "tokens": judge_tokens,
        "pairs": lambda where, entries: judge_pairs(where, entries, tokens or {}),
        "prices": lambda where, entries: judge_prices(where, entries, pairs or {}),
        "blacklist": judge_blacklist,
    }
    for name, entries in content.items():
        if entries is not None:
            yield from judges[name](answers[name].where, entries)


def is_well_formed(address: object) -> bool:
    """Whether a value is an address, i.e. a string of 0x and 40 hexadecimal digits."""
    return isinstance(address, str) and _is_address(address) is not None


def _judge_keys(check: str, where: str, entry: JsonMembers, known: set[str]) -> Result:
    unknown = sorted(entry.keys() - known)
    return judged(check, not unknown, where, "documented keys only", Said(", ".join(unknown)))
