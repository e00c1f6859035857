"""The Market surface of a stage: live books, makers who sign over sockets, and swaps that are mined.

front = Front(stage)
route = front.quote(amount=2 * ONE)
spent, received = await front.swap(route, slippage=0)
"""

import json
from typing import Any

from msgspec.structs import replace

from cambist.codecs.messages.market_messages import PriceRoute, QuoteQuery, TransactionEnvelope
from cambist.codecs.messages.wire import encode
from cambist.crypto.addresses import parse_address, to_checksum
from cambist.crypto.hexadecimal import parse_hex
from cambist.engine.host.admission.ledger import Ledger
from cambist.engine.trade.market.market_desk import MarketDesk
from cambist.engine.trade.quote.ask import FeeRules
from cambist.engine.trade.quote.market_price import market_route
from cambist.feeds.books.usd_prices import UsdPrices
from support.chain.world import NATIVE, ONE
from support.makers.firm_makers import Stage
from support.venue.admitting import signatures
from support.venue.market_place import CHAIN_ID, KEYED, PARTNERS, TIERS, USER_PLACES, a_shop_on

_DECIMALS = {"ETH": 18, "WETH": 18, "USDC": 6, "DAI": 18, "WBTC": 8}


class Front:
    """Sells WETH, USDC, DAI and `fourth` on a stage."""

    def __init__(self, stage: Stage, fourth: bytes = b"\x44" * 20) -> None:
        world = stage.world
        shop = a_shop_on(world, fourth=fourth)
        usd = UsdPrices(stage.index, stage.decimals, frozenset({world.usdc, world.dai}))
        place = replace(shop.place, index=stage.index, usd=usd, pathfinder=stage.pathfinder, desk=stage.desk)
        self.stage = stage
        self.places, self.seal = {CHAIN_ID: place}, shop.seal
        self.desk = MarketDesk(
            self.places, shop.seal, PARTNERS, TIERS, ledger=Ledger(), user_places=USER_PLACES
        )

    def quote(self, **changed: Any) -> PriceRoute:
        """Quote of one WETH for USDC, with `changed` parameters."""
        parameters = {
            "srcToken": "WETH", "destToken": "USDC", "amount": ONE, "network": CHAIN_ID, "version": "6.2",
            **changed,
        }  # fmt: skip
        query = "&".join(f"{name}={value}" for name, value in parameters.items())
        return self.desk.prices(query.encode(), self.stage.now_ms).price_route

    def quote_for(self, partner_fee_bps: int, **changed: Any) -> PriceRoute:
        """The same as the Market path of GET /v2/quote, which takes a fee."""
        parameters = {
            "chain_id": CHAIN_ID, "src_token": "WETH", "dest_token": "USDC", "amount": str(ONE),
            "partner_fee_bps": partner_fee_bps, **changed,
        }  # fmt: skip
        for end in ("src", "dest"):
            parameters[f"{end}_decimals"] = _DECIMALS[parameters[f"{end}_token"]]
        return market_route(
            self.places, self.seal, FeeRules(PARTNERS, TIERS), QuoteQuery(**parameters), self.stage.now_ms
        )

    async def swap(self, route: PriceRoute, **body: Any) -> tuple[int, int]:
        """Build and send it; returns what it cost the user and brought, gas apart."""
        world = self.stage.world
        fixed = "srcAmount" if route.side == "SELL" else "destAmount"
        sent = {
            "priceRoute": json.loads(encode(route)),
            "srcToken": route.src_token,
            "destToken": route.dest_token,
            "userAddress": to_checksum(world.user.address),
            fixed: route.src_amount if route.side == "SELL" else route.dest_amount,
            "slippage": 100,
            **body,
        }
        built = await self.desk.transaction(
            CHAIN_ID, b"", json.dumps(sent).encode(), self.stage.now_ms, KEYED, signatures()
        )
        assert isinstance(built, TransactionEnvelope)
        assert isinstance(built.gas, str)
        ends = parse_address(route.src_token), parse_address(route.dest_token)
        before = [await world.balance(token, world.user) for token in ends]
        receipt = await world.send(
            world.user,
            parse_address(built.to),
            parse_hex(built.data, "data"),
            value_wei=int(built.value),
            gas=int(built.gas),
        )
        paid = receipt.gas_used * receipt.gas_price_wei
        after = [await world.balance(token, world.user) + (paid if token == NATIVE else 0) for token in ends]
        return before[0] - after[0], after[1] - before[1]
