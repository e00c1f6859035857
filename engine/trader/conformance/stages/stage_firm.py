"""Stages of POST /firm: requests that the maker must quote, requests that it must refuse, and load."""

from collections.abc import Sequence
from contextlib import suppress

import trio

from .....codecs.amounts import parse_amount
from .....config.errors import ChainError, InvalidInput
from .....crypto.addresses import parse_address
from ..checks.firm import (
    Asking,
    Quoted,
    ask,
    askings,
    deep_askings,
    judge_answer,
    judge_expiry,
    judge_terms,
    tiny_amount,
    variations,
)
from ..checks.firm_refusals import (
    Spoiled,
    judge_blacklisted,
    not_there,
    silent,
    spoiled,
    unlisted,
    wrong_taker,
)
from ..checks.load import LoadSample, judge_load, load_report
from ..checks.market import MakerMarket, deviation_bps, expected_range
from ..checks.resources import entries_of, is_well_formed
from ..checks.signatures import judge_nonces, judge_signature, judge_user
from ..exchange import HttpExchange, judge_refusal, read_json
from ..probe import ProbeConnection
from ..rules import judged
from ..session import Session
from .stage_chain import check_orders_on_chain

NO_PAIR = "no pair is quoted"
_NONCES = 16


async def check_quotes(session: Session) -> None:
    """Request up to four firm quotes on each of the first `pairs_max` pairs, and judge the orders.

    The four requests of a pair buy or sell, and fix the base or the quote amount.
    """
    market = await session.market()
    if not market.legs():
        session.lack(NO_PAIR, "firm", "chain")
        return
    asker = session.rng, session.users, session.taker
    orders = await _ask_all(session, market, askings(market, *asker))
    market = await session.market()
    if orders and market.legs():
        orders += await _ask_all(session, market, [*variations(market, *asker)])
    elif not orders:
        session.lack("no plain quote was given", "firm", "chain")
        return
    session.lack("no amount fits the depth", "firm.over-asked-sell", "firm.over-asked-buy")
    await _check_nonces(session, orders)
    await check_orders_on_chain(session, orders)
    await _check_blacklisted(session)


async def check_deep_quotes(session: Session) -> None:
    """Request firm quotes for up to half of the depth of the maker's price grids, and judge the orders.

    The stage runs after the quotes for small amounts, since deep quotes may tie up a maker's funds.
    """
    market = await session.market()
    if await session.find_good() is not None:
        await _ask_all(session, market, deep_askings(market, session.rng, session.users, session.taker))


async def _ask_all(session: Session, before: MakerMarket, requests: Sequence[Asking]) -> list[Quoted]:
    """Send firm-quote requests, judge each answer by the prices before and after, and return the orders."""
    orders: list[Quoted] = []
    for asking in requests:
        exchange = await session.send_firm(asking)
        after = await session.market()
        for found in judge_answer(asking, exchange, before, after):
            if isinstance(found, Quoted):
                orders.append(found)
                await _judge_order(session, found, before, after)
            else:
                session.add([found])
        before = after
    return orders


async def _judge_order(session: Session, quoted: Quoted, before: MakerMarket, after: MakerMarket) -> None:
    session.add(judge_terms(quoted, before, after, session.options.drift_bps))
    session.add(judge_user(quoted))
    session.add(judge_expiry(quoted))
    is_contract = session.options.contract_maker
    if session.node is not None:
        with suppress(ChainError):  # the chain checks report it
            is_contract = await session.node.has_code(parse_address(quoted.order["maker"]))
    session.add(judge_signature(quoted, session.domain, is_contract=is_contract))
    if is_contract and session.node is None:
        session.skip("--contract-maker without --node-url", "firm.signature")
    ladder = before.ladder(quoted.asking.pair_id, quoted.asking.leg)
    if quoted.asking.purpose == "small" and ladder is not None:
        session.keep_good(quoted.asking, ladder)


async def _check_nonces(session: Session, orders: Sequence[Quoted]) -> None:
    """Judge whether the nonces of firm quotes repeat or show a pattern.

    If `orders` are fewer than _NONCES, the check requests further quotes for tiny amounts.
    """
    if not session.wants("firm.nonce-distinct", "firm.nonce-unforeseeable"):
        return
    nonces = [quoted.nonce_and_meta for quoted in orders]
    market = await session.market()
    legs = market.legs()
    while legs and len(nonces) < _NONCES:
        pair_id, leg, ladder = legs[0]
        amount = tiny_amount(leg, ladder, session.rng)
        asking = ask(market, pair_id, leg, amount, session.users.next(), session.taker)
        nonce = _nonce(await session.send_firm(asking))
        if nonce is None:
            break
        nonces.append(nonce)
    session.add(judge_nonces(nonces, f"{len(nonces)} quotes", "firm.nonce-distinct"))


def _nonce(exchange: HttpExchange) -> int | None:
    document = read_json(exchange.body).value if exchange.succeeded else None
    order = document.get("order") if isinstance(document, dict) else None
    nonce = order.get("nonceAndMeta") if isinstance(order, dict) else None
    return _amount(nonce)


def _amount(text: object) -> int | None:
    try:
        return parse_amount(text)
    except InvalidInput:
        return None


async def _check_blacklisted(session: Session) -> None:
    if not session.wants("firm.blacklisted"):
        return
    listed = entries_of("blacklist", session.snapshot["blacklist"]) or []
    address = session.options.blacklisted or next(filter(is_well_formed, listed), None)
    asking = await session.find_good()
    if address is None or asking is None:
        if address is None:
            session.skip("no address is blacklisted: --blacklisted", "firm.blacklisted")
        else:
            session.lack(NO_PAIR, "firm.blacklisted")
        return
    digits = address[2:]
    for user in dict.fromkeys((address, f"0x{digits.lower()}", f"0x{digits.upper()}")):
        body = asking.body | {"userAddress": user}
        blacklisted = Asking(asking.pair_id, asking.leg, asking.amount, "blacklisted", body)
        session.add(judge_blacklisted(await session.send_firm(blacklisted), user))


async def check_refusals(session: Session) -> None:
    """Send every invalid variant of a quoted request, which the maker must refuse, then the valid request."""
    good = await session.find_good()
    if good is None or session.good is None:
        session.lack("no quote was given to start from", "refuse")
        return
    market = await session.market()
    found = session.good
    cases = [*spoiled(good, found.depth, found.other), *unlisted(good, market), *silent(good, market)]
    if session.options.taker is not None:
        cases.append(wrong_taker(good))
    for case in cases:
        if session.wants(case.check):
            await _try(session, case)
    again = await session.send_firm(good)
    where = f"{again.where} (after everything refused)"
    session.add([judged("refuse.recovers", again.succeeded, where, "200 with an order", again.said)])
    session.add(not_there(market, taker_given=session.options.taker is not None))
    session.skip("every two tokens are a pair", "refuse.unlisted-pair")


async def _try(session: Session, case: Spoiled) -> None:
    exchange = await session.probe.send(
        "POST", f"{session.prefix}/firm", case.raw, content_type=case.content_type
    )
    session.add(judge_refusal(case.check, exchange, case.what))


async def check_load(session: Session) -> None:
    """Request batches of quotes over several connections, and judge latency, failures and prices.

    The prices are fetched before the first batch and after each batch.
    """
    options = session.options
    if not options.quotes:
        session.skip("--quotes 0", "load")
        return
    before = await session.market()
    samples: list[LoadSample] = []
    elapsed_s = 0.0
    while len(samples) < options.quotes and before.legs():
        count = min(options.quotes - len(samples), options.connections * 8)
        started = trio.current_time()
        answers = await _round(session, before, count)
        elapsed_s += trio.current_time() - started
        after = await session.market()
        samples.extend(_sample(asking, exchange, before, after) for asking, exchange in answers)
        before = after
    if not samples:
        session.lack(NO_PAIR, "load")
        return
    session.load = load_report(samples, options.connections, elapsed_s)
    session.add(judge_load(samples, session.load, options.drift_bps))


async def _round(session: Session, market: MakerMarket, count: int) -> list[tuple[Asking, HttpExchange]]:
    legs = market.legs()
    todo = []
    for _ in range(count):
        pair_id, leg, ladder = session.rng.choice(legs)
        amount = tiny_amount(leg, ladder, session.rng)
        todo.append(ask(market, pair_id, leg, amount, session.users.next(), session.taker, "load"))
    answers: list[tuple[Asking, HttpExchange]] = []

    async def work() -> None:
        async with ProbeConnection(session.probe) as line:
            while todo:
                asking = todo.pop()
                answers.append((asking, await line.send("POST", f"{session.prefix}/firm", asking.raw)))

    async with trio.open_nursery() as nursery:
        for _ in range(min(session.options.connections, count)):
            nursery.start_soon(work)
    return answers


def _sample(asking: Asking, exchange: HttpExchange, before: MakerMarket, after: MakerMarket) -> LoadSample:
    latency_ms = exchange.latency_ms
    if 400 <= exchange.status <= 499:
        return LoadSample(latency_ms, refused=True)
    nonce = _nonce(exchange)
    if nonce is None:
        return LoadSample(
            latency_ms, trouble=exchange.said if not exchange.succeeded else "a success without order"
        )
    order = read_json(exchange.body).value["order"]
    amount = _amount(order.get(asking.leg.computed))
    expected = expected_range(before, after, asking.pair_id, asking.leg, asking.amount)
    if expected is None or amount is None:
        return LoadSample(latency_ms, nonce_and_meta=nonce)
    return LoadSample(latency_ms, nonce_and_meta=nonce, off_bps=deviation_bps(amount, expected))
