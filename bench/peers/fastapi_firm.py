"""Market maker of common packages: FastAPI, pydantic, `hmac.new`, a walk in Decimals, eth-account.

Requests, prices, blacklist, reservations and answers are the same as those of cambist's maker.
Runs in .venv-peers, for eth-account holds pycryptodome below the version that cambist uses.
"""

# pyright: reportMissingImports=false
import hashlib
import hmac
import secrets
import time
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal, getcontext
from typing import Any

import uvicorn
from eth_account import Account
from eth_account.messages import encode_typed_data
from fastapi import FastAPI, Request
from fastapi.responses import JSONResponse
from pydantic import BaseModel

from bench.maker_work import (
    ACCESS_KEY,
    BASE_DECIMALS,
    BLACKLISTED,
    CHAIN_ID,
    CONTRACT,
    DOMAIN,
    KEY_HEX,
    MAKER,
    PAIRS,
    SECRET,
    TAKER,
    TARGET,
    base_address,
    grid,
    quote_address,
    quote_decimals,
)
from bench.peers.served import freeze, inherited, options

DOMAIN_DATA = {"name": "AUGUSTUS RFQ", "version": "1", "chainId": CHAIN_ID, "verifyingContract": CONTRACT}
TYPES = {
    "Order": [
        {"name": "nonceAndMeta", "type": "uint256"},
        {"name": "expiry", "type": "uint128"},
        {"name": "makerAsset", "type": "address"},
        {"name": "takerAsset", "type": "address"},
        {"name": "maker", "type": "address"},
        {"name": "taker", "type": "address"},
        {"name": "makerAmount", "type": "uint256"},
        {"name": "takerAmount", "type": "uint256"},
    ]
}
FUNDS = 10**30
TOLERANCE_MS = 30_000
EXPIRY_S = 150
Side = list[tuple[Decimal, Decimal]]

getcontext().prec = 100


class FirmRequest(BaseModel):  # type: ignore[misc]  # pydantic is not in this environment
    """Body of POST /firm, with its members as the API spells them."""

    makerAsset: str  # noqa: N815
    takerAsset: str  # noqa: N815
    makerAmount: str | None = None  # noqa: N815
    takerAmount: str | None = None  # noqa: N815
    userAddress: str  # noqa: N815
    takerAddress: str  # noqa: N815


class Refused(Exception):
    """Error: reason why the maker gives no firm quote."""


class Maker:
    """Market maker that signs firm quotes: its prices, blacklist and reserved amounts."""

    def __init__(self) -> None:
        self.blacklist = {f"0x{1 + user:040x}" for user in range(BLACKLISTED)}
        self.reserved: dict[str, int] = {}
        self.quotes = 0
        self.markets: dict[tuple[str, str], tuple[bool, Side, int]] = {}
        for pair in range(PAIRS):
            base, quote, prices = base_address(pair), quote_address(pair), grid(pair)
            assert isinstance(prices.bids, tuple)
            assert isinstance(prices.asks, tuple)
            bids, asks = _side(prices.bids), _side(prices.asks)
            self.markets[base, quote] = (True, asks, quote_decimals(pair))
            self.markets[quote, base] = (False, bids, quote_decimals(pair))

    def quote(self, firm_request: FirmRequest) -> dict[str, Any]:
        """Sign the order of a firm quote and reserve its amount; raise Refused if the maker cannot quote."""
        market = self.markets.get((firm_request.makerAsset.lower(), firm_request.takerAsset.lower()))
        if market is None or firm_request.takerAddress.lower() != TAKER:
            raise Refused("Pair not quoted")
        maker_amount, taker_amount = _amounts(firm_request, *market)
        reserved = self.reserved.get(firm_request.makerAsset, 0)
        if maker_amount >= FUNDS - reserved:
            raise Refused("Not enough funds")
        order = {
            "nonceAndMeta": secrets.randbits(96) << 160 | int(firm_request.userAddress, 16),
            "expiry": int(time.time()) + EXPIRY_S,
            "makerAsset": firm_request.makerAsset,
            "takerAsset": firm_request.takerAsset,
            "maker": MAKER,
            "taker": firm_request.takerAddress,
            "makerAmount": maker_amount,
            "takerAmount": taker_amount,
        }
        signed = Account.sign_message(encode_typed_data(DOMAIN_DATA, TYPES, order), KEY_HEX)
        self.reserved[firm_request.makerAsset] = reserved + maker_amount
        self.quotes += 1
        amounts = {name: str(order[name]) for name in ("nonceAndMeta", "makerAmount", "takerAmount")}
        return order | amounts | {"signature": "0x" + bytes(signed.signature).hex()}


def _side(levels: tuple[tuple[str, str], ...]) -> Side:
    return [(Decimal(price), Decimal(amount)) for price, amount in levels]


def _amounts(firm_request: FirmRequest, gives_base: bool, side: Side, decimals: int) -> tuple[int, int]:
    """Compute (maker amount, taker amount) of a firm quote, raw units, level by level of a book's side."""
    text = firm_request.makerAmount if firm_request.takerAmount is None else firm_request.takerAmount
    amount = int(text or "0")
    is_base = gives_base is (firm_request.takerAmount is None)
    base_unit, quote_unit = Decimal(10) ** BASE_DECIMALS, Decimal(10) ** decimals
    left, other = Decimal(amount) / (base_unit if is_base else quote_unit), Decimal(0)
    for price, available in side:
        taken = min(left, available if is_base else available * price)
        left -= taken
        other += taken * price if is_base else taken / price
        if not left:
            break
    else:
        raise Refused("Beyond depth")
    raw = other * (quote_unit if is_base else base_unit)
    if firm_request.takerAmount is None:
        return amount, int(raw.to_integral_value(ROUND_CEILING))
    return int(raw.to_integral_value(ROUND_FLOOR)), amount


def _is_signed(request: Request, body: bytes) -> bool:
    headers = request.headers
    timestamp = headers.get("x-auth-timestamp", "")
    if headers.get("x-auth-domain") != DOMAIN or headers.get("x-auth-access-key") != ACCESS_KEY:
        return False
    if not timestamp.isdigit() or abs(int(timestamp) - time.time() * 1_000) > TOLERANCE_MS:
        return False
    payload = timestamp.encode() + request.method.encode() + request.url.path.encode() + body
    expected = hmac.new(SECRET.encode(), payload, hashlib.sha256).hexdigest()
    return hmac.compare_digest(expected, headers.get("x-auth-signature", ""))


def make_application() -> FastAPI:
    app, maker = FastAPI(), Maker()

    @app.post(TARGET)  # type: ignore[untyped-decorator]
    async def firm(request: Request) -> JSONResponse:
        body = await request.body()
        if not _is_signed(request, body):
            return JSONResponse({"error": "not signed"}, 401)
        firm_request = FirmRequest.model_validate_json(body)
        if firm_request.userAddress.lower() in maker.blacklist:
            return JSONResponse({"message": "this user gets no firm quotes"})
        try:
            return JSONResponse({"order": maker.quote(firm_request)})
        except Refused as refusal:
            return JSONResponse({"error": str(refusal)}, 400)

    return app


if __name__ == "__main__":
    chosen = options(__doc__).parse_args()
    config = uvicorn.Config(
        make_application(), loop="uvloop", http="httptools", access_log=False, log_level="warning",
        timeout_keep_alive=75,
    )  # fmt: skip
    freeze()
    uvicorn.Server(config).run(sockets=[inherited(chosen.fd)])
