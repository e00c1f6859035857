"""Scenes of market makers: a firm quote, its fill on chain, a maker's rules; swaps of a trader."""

import time

import msgspec
from msgspec import Struct

from ....codecs.amounts import format_units
from ....codecs.contracts.calldata import OrderInfo
from ....codecs.contracts.router_calldata import Hop, RouterSwap, swap_exact_in
from ....codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder, rfq_domain_separator
from ....config.chains import ChainSettings
from ....config.errors import Reverted
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import parse_hex, to_hex
from ....crypto.hmac_auth import RequestSigner
from ....crypto.signatures import signer
from ...chain.port import EthCall
from ...chain.transact import transact
from ...trader.client.public.offers import OfferedTrade
from ...trader.client.swap.swapping import Offer
from ...trader.conformance.checks.auth import Credentials
from ...trader.conformance.options import BaseUrl, CheckOptions
from ...trader.conformance.rules import CheckStatus, Selection
from ...trader.conformance.run import run_checks
from ..place.layout import CHAIN_ID, VENUE, Shared
from .stage import WAIT_S, DemoStage, expect

_SOLD = 15 * 10**17
_DEADLINE_S = 300


class _AlphaClient(Struct, frozen=True):
    """HTTP client of the maker alpha, which signs each request as the venue does."""

    stage: DemoStage

    @property
    def port(self) -> int:
        return self.stage.place.layout.ports["alpha"]

    @property
    def secret(self) -> bytes:
        return self.stage.place.secrets[Shared(VENUE, "alpha").name].encode()

    async def ask(self, method: str, path: str, body: bytes = b"") -> tuple[int, bytes]:
        """Return the status and the body of an answer."""
        target, signing = f"/{CHAIN_ID}{path}", RequestSigner(VENUE, "key-1", self.secret)
        headers = signing.headers(time.time_ns() // 1_000_000, method, target, body)
        url = f"http://127.0.0.1:{self.port}{target}"
        answer = await self.stage.http.request(method, url, content=body, headers=headers, timeout=WAIT_S)
        return answer.status_code, answer.content


async def show_maker(stage: DemoStage) -> None:
    """Scene 1: a firm quote is signed, verified and filled; the kill switch; all rules of the interface."""
    maker = _AlphaClient(stage)
    order, signature = await _firm_quote(maker)
    await _fill(stage, order, signature)
    switch = stage.place.roles.makers["alpha"].switch
    for act, expected in ((switch.stop, 503), (switch.resume, 200)):
        act("all")
        status, _ = await maker.ask("GET", "/prices")
        expect("GET /prices of a maker that was stopped or resumed", status, expected)
    stage.say("its kill switch stops it: GET /prices is answered 503, and 200 after `resume`")
    await stage.live()  # the venue and the agents have dropped the books of the stopped maker
    report = await run_checks(
        CheckOptions(
            base=BaseUrl("http", "127.0.0.1", maker.port, f"/{CHAIN_ID}", f"127.0.0.1:{maker.port}"),
            credentials=Credentials(VENUE, "key-1", maker.secret),
            selection=Selection(strict=True),
            chain_id=CHAIN_ID,
            rfq_contract=stage.at("rfq"),
            taker=to_hex(stage.at("executor")),
        ),
        now_ms=stage.clock.now_ms,
    )
    failed = [each.check.id for each in report.verdicts if each.status is CheckStatus.FAILED]
    expect("rules of the interface that the maker breaks", failed, [])
    stage.say(f"`cambist maker check`: {report.count(CheckStatus.PASSED)} rules kept, none broken")


async def _firm_quote(maker: _AlphaClient) -> tuple[RfqOrder, bytes]:
    stage = maker.stage
    wish = {
        "makerAsset": to_hex(stage.at("USDC")),
        "takerAsset": to_hex(stage.at("WETH")),
        "takerAmount": str(_SOLD),
        "userAddress": to_hex(stage.key("user").address),
        "takerAddress": to_hex(stage.at("executor")),
    }
    status, answer = await maker.ask("POST", "/firm", msgspec.json.encode(wish))
    expect(f"POST /firm ({answer.decode()})", status, 200)
    members = msgspec.json.decode(answer)["order"]
    signature = parse_hex(members.pop("signature"), "signature")
    order: RfqOrder = RFQ_ORDER.from_wire(members)
    domain = rfq_domain_separator(ChainSettings(name="").rfq_domain_name, CHAIN_ID, stage.at("rfq"))
    digest_of = RFQ_ORDER.compiled.digest_for(domain)
    expect("signer of the quote", signer(digest_of(order), signature), stage.key("alpha").address)
    more = msgspec.structs.replace(order, maker_amount=order.maker_amount + 1)
    if signer(digest_of(more), signature) == stage.key("alpha").address:
        raise AssertionError("a quote of one unit more has the maker's signature")
    stage.say(f"alpha signs {format_units(order.maker_amount, 6)} USDC for 1.5 WETH, and not one unit more")
    return order, signature


async def _fill(stage: DemoStage, order: RfqOrder, signature: bytes) -> None:
    """Fill a quote through the Router as its user; a second time and as a stranger it reverts."""
    user, before = stage.key("user"), await stage.balances()
    swap = RouterSwap(
        src_token=order.taker_asset,
        dest_token=order.maker_asset,
        src_amount=order.taker_amount,
        dest_amount=order.maker_amount,
        expected_amount=order.maker_amount,
        receiver=user.address,
        deadline=stage.clock.now_ms() // 1_000 + _DEADLINE_S,
        partner_and_fee=0,
        permit=b"",
        hops=(Hop(orders=(OrderInfo(order, signature, order.taker_amount),)),),
    )
    data = swap_exact_in(swap)
    await transact(stage.near, user, stage.at("router"), data)
    moves = await stage.moves(before)
    expect("what alpha gave and got", moves["alpha"], {"WETH": _SOLD, "USDC": -order.maker_amount})
    await _reverts(stage, "the same quote again", data, "user", "Couldn't swap")
    await _reverts(stage, "the same quote by a stranger", data, "stranger", "NotTheUsers")


async def _reverts(stage: DemoStage, what: str, data: bytes, who: str, word: str) -> None:
    """Call the Router, which has to revert with a reason that contains the word."""
    try:
        await stage.near.call(EthCall(stage.at("router"), data, stage.key(who).address))
    except Reverted as refusal:
        if word not in refusal.reason:
            raise AssertionError(f"{what}: {refusal.reason}") from None
        stage.say(f"{what}: refused by the chain, {refusal.reason}")
    else:
        raise AssertionError(f"{what}: it goes through")


async def show_swaps(stage: DemoStage) -> None:
    """Scene 2: a swap over two hops, two refused attempts, and a maker that stands in for another."""
    venue, user, before = stage.venue, stage.key("user"), await stage.balances()
    swap = await venue.swap("WETH", "WBTC", 4, key=user)
    hops = [hop for part in swap.offer.route.best_route for hop in part.swaps]
    makers = [each.exchange for hop in hops for each in hop.swap_exchanges]
    expect("makers of the two hops", makers, ["alpha", "gamma"])
    moves = await stage.moves(before)
    bought = {symbol: moves["user"][symbol] for symbol in ("WETH", "WBTC")}
    expect("the user's moves", bought, {"WETH": -swap.spent.raw, "WBTC": swap.received.raw})
    stage.say(f"{swap.spent} for {swap.received} over two hops, in block {swap.block_number}")
    sent = await stage.rpc(stage.node, "eth_getTransactionByHash", swap.tx_hash)
    await _reverts(stage, "the same calldata again", parse_hex(sent["input"], "input"), "user", "StepFailed")
    await _show_changed_route(stage)

    # Called between the price and the firm quotes: the venue has alpha's book, and alpha signs nothing more.
    def stop_alpha(offered: OfferedTrade[Offer]) -> bool:
        stage.place.roles.makers["alpha"].switch.stop("all")
        stage.say(f"alpha has quoted {offered.buy} for {offered.sell}, and stops before it signs")
        return True

    before = await stage.balances()
    swap = await venue.swap("WETH", "USDC", 2, key=user, agree=stop_alpha)
    moves = await stage.moves(before)
    expect("who has traded", {"alpha", "beta"} & moves.keys(), {"beta"})
    expect("the user's USDC", moves["user"]["USDC"], swap.received.raw)
    stage.say(f"beta signed in its place: {swap.received}, above the minimum that the user agreed to")
    stage.place.roles.makers["alpha"].switch.resume("all")
    await stage.live()


async def _show_changed_route(stage: DemoStage) -> None:
    """Have the venue refuse to build the transaction of a price route that was changed by one unit."""
    user = to_checksum(stage.key("user").address)
    weth, usdc = to_checksum(stage.at("WETH")), to_checksum(stage.at("USDC"))
    ends = f"srcToken={weth}&srcDecimals=18&destToken={usdc}&destDecimals=6"
    wish = f"{ends}&amount={_SOLD}&side=SELL&network={CHAIN_ID}&userAddress={user}"
    route = (await stage.json("GET", f"{stage.url}/prices?{wish}"))["priceRoute"]
    route["destAmount"] = str(int(route["destAmount"]) + 1)
    body = {
        "srcToken": weth,
        "srcDecimals": 18,
        "destToken": usdc,
        "destDecimals": 6,
        "srcAmount": str(_SOLD),
        "slippage": 50,
        "userAddress": user,
        "priceRoute": route,
    }
    answer = await stage.json("POST", f"{stage.url}/transactions/{CHAIN_ID}", body)
    expect("errorType of a changed route", answer.get("errorType"), "InvalidPriceRoute")
    stage.say(f"a route with one unit more: refused by the venue, {answer['details']}")
