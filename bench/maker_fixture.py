"""Market maker of the load test of POST /firm: one chain with 200 pairs, built from settings text.

    settings text -> chain -> ChainSurface.firm     cambist's server, and every peer with the same handler

All features of a real maker are on: HMAC, 10,000 blacklisted users, reservations, bounds of one quote, of all
open ones of a pair and of the unused ones of a user, counters.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

from msgspec import Struct

from bench.maker_work import (
    ACCESS_KEY,
    BASE_DECIMALS,
    BLACKLISTED,
    CHAIN_ID,
    CONTRACT,
    DOMAIN,
    KEY_HEX,
    PAIRS,
    SECRET,
    TAKER,
    TARGET,
    base_address,
    body,
    pair_id,
    quote_address,
    quote_decimals,
    signed_headers,
    snapshot,
    wall_ms,
    work,
)
from cambist.codecs.http1 import Request
from cambist.config.errors import CambistError, PathNotFound
from cambist.config.settings import Settings, parse_settings
from cambist.engine.host.process.credentials import policed_key, request_verifier
from cambist.engine.host.server import HttpCall, Reply
from cambist.engine.host.server.gate import Gate
from cambist.engine.roles.maker.app import random96_source
from cambist.engine.roles.maker.role import ChainRole, build_chain
from cambist.engine.roles.maker.surface import ChainSurface


def settings_text(pairs: int = PAIRS) -> str:
    """Return the text of the settings of a market maker with a number of token pairs."""
    chain = f"maker.chains.{CHAIN_ID}"
    blacklist = ",".join(f'"0x{1 + user:040x}"' for user in range(BLACKLISTED))
    tokens: dict[str, tuple[str, int]] = {}
    listed = []
    for pair in range(pairs):
        base, quote = pair_id(pair).split("/")
        tokens[base] = base_address(pair), BASE_DECIMALS
        tokens[quote] = quote_address(pair), quote_decimals(pair)
        listed.append(
            f'[{chain}.pairs."{base}/{quote}"]\nbase = "{base}"\nquote = "{quote}"\n'
            'liquidity_usd = 1000000\nnotional_max = "1000000"\nopen_notional_max = "1000000000000"\n'
        )
    held = [
        f'[{chain}.tokens.{name}]\naddress = "{address}"\ndecimals = {decimals}\n'
        'balance = "1000000000000"\nquote_max = "1000000"\n'
        for name, (address, decimals) in tokens.items()
    ]
    return f"""
[chains.{CHAIN_ID}]
name = "devnet"
rfq = true
rfq_contract = "{CONTRACT}"
[keys.maker]
source = "env:MAKER_KEY"
[keys.maker.policy]
contracts = ["{CHAIN_ID}:{CONTRACT}"]
[auth.domains.{DOMAIN}]
keys = [{{ access_key = "{ACCESS_KEY}", secret = "env:VENUE_SECRET" }}]
[{chain}]
key = "maker"
price_source = "static"
price_options = {{ path = "prices.json" }}
price_life_ms = 3600000
takers = ["{TAKER}"]
unused_quotes_max = 1000000
live_quotes_max = 10000000
blacklist = [{blacklist}]
{"".join(held)}{"".join(listed)}"""


class Maker(Struct, frozen=True):
    """A market maker of the load test, with its settings and present prices.

    Attributes:
        role: the state and services of its one chain.
        surface: mounted routes; `surface.firm` is the whole handler of POST /firm.
    """

    settings: Settings
    role: ChainRole
    surface: ChainSurface


def build_maker(pairs: int = PAIRS, now_ms: int | None = None) -> Maker:
    """Build a market maker with present prices, for cambist's server and for other servers.

    Args:
        pairs: number of token pairs.
        now_ms: time since which the prices hold, Unix milliseconds; None for the present time.
    """
    environ = {"MAKER_KEY": KEY_HEX, "VENUE_SECRET": SECRET}
    settings = parse_settings(settings_text(pairs), environ, Path())
    keys = {name: policed_key(name, key) for name, key in settings.keys.items()}
    assert settings.maker
    role = build_chain(settings, settings.maker, CHAIN_ID, keys, random96_source(), 1)
    surface = ChainSurface(
        gate=Gate(request_verifier(settings), role.settings.auth),
        board=role.board,
        desk=role.desk,
        blacklist=role.blacklist,
        broadcast=role.broadcast,
        message=role.settings.message,
    )
    for name, prices in snapshot(0, pairs).items():
        role.board.apply(name, prices, wall_ms() if now_ms is None else now_ms)
    return Maker(settings, role, surface)


def prepared_calls(numbers: range, now_ms: int) -> Iterator[HttpCall]:
    """Yield requests for firm quotes, signed at `now_ms`, as the server hands them to its handler."""
    target = TARGET.encode()
    for number in numbers:
        raw = body(work(number))
        signed = [
            (name.lower().encode(), value.encode()) for name, value in signed_headers(raw, now_ms).items()
        ]
        headers = [(b"host", b"127.0.0.1:8080"), (b"content-type", b"application/json"), *signed]
        yield HttpCall(
            Request(b"POST", target, target, None, 1, headers, True, dict(headers), raw),
            "127.0.0.1",
            f"bench-{number:x}",
            now_ms,
            (),
        )


Answering = Callable[[bytes, list[tuple[bytes, bytes]], bytes], Reply]


def answering(maker: Maker) -> Answering:
    """Return a maker's handler of POST /firm in a form that other servers than cambist's can call.

    Returns:
        Function of (target, headers in lower case, body) that returns the reply.
    """
    firm, refusal, known = maker.surface.firm, maker.surface.surface.refusal, TARGET.encode()

    def answer(target: bytes, headers: list[tuple[bytes, bytes]], raw: bytes) -> Reply:
        if target != known:
            return refusal(PathNotFound(), "")
        request = Request(b"POST", target, target, None, 1, headers, True, dict(headers), raw)
        try:
            return firm(HttpCall(request, "127.0.0.1", "", wall_ms(), ()))
        except CambistError as error:
            return refusal(error, "")

    return answer
