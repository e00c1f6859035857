"""A small, right market maker, written apart from the package's, and open to be spoiled in one place.

Prices walk with fractions, HMAC is the standard library's, JSON is `json`'s; the package lends the signature
alone. The attributes of `Maker` list the members that a fault may change.
"""

import hashlib
import hmac
import json
import re
import secrets
from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor
from typing import Any

from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder, rfq_domain_separator
from cambist.crypto.keccak import keccak256
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_65

CHAIN_ID = 31_337
PREFIX = "/31337"
CONTRACT = bytes(range(1, 21))
DOMAIN_NAME = "AUGUSTUS RFQ"
DOMAIN, ACCESS_KEY, SECRET = "venue", "access-1", "correct horse battery staple"
TAKER = "0x" + "7a" * 20
BLACKLISTED = "0x" + "bb" * 20
KEY = SigningKey(hashlib.sha256(b"a maker of tests").digest())
WETH, USDC, WBTC, DAI = ("0x" + digits * 20 for digits in ("a1", "b2", "c3", "d4"))

_ADDS_EVERY = 4  # ticks between two new addresses of the blacklist

Entries = dict[str, Any]
Headers = dict[str, str]


class Refused(Exception):
    """An error answer: its status and text."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
        self.text = text


def _token(symbol: str, address: str, decimals: int) -> Entries:
    return {
        "symbol": symbol,
        "name": symbol,
        "description": f"{symbol} of the tests",
        "address": address,
        "decimals": decimals,
        "type": "ERC20",
    }


def _address_of(tick: int) -> str:
    return "0x" + hashlib.sha256(b"%d" % tick).hexdigest()[:40]


def _levels(*levels: tuple[str, str]) -> list[list[str]]:
    return [list(level) for level in levels]


def _reserialised(body: bytes) -> bytes:
    """As a framework has it that hands out the parsed body alone."""
    try:
        return json.dumps(json.loads(body), separators=(",", ":"), ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        return body


class Maker:
    """Answers of the maker; `faulty_serving` serves them.

    Attributes a fault may change:
        flags: names of leniences and habits, looked up where they apply.
        entries: resource -> change of its content, over HTTP and in the first message.
        raw: resource -> change of its body's bytes.
        terms: change of the order before it is signed.
        order: change of the order's JSON after it was signed.
        domain: of the signature.
        firm_body: change of the whole successful answer.
        updates: change of each later message of the socket.
        first: change of the first message.
        wire: change of an answer's bytes; the connection ends behind one that is changed.
        content_type, error_content_type: of every answer, and of errors.
        slow_s: that every answer over HTTP takes.
        firm_requests: POST /firm that came.
        heard: requests, handshakes and broken requests that came.
        error_status, error_text: of every error.
    """

    def __init__(self, now_ms: Callable[[], int]) -> None:
        self.now_ms = now_ms
        self.flags: set[str] = set()
        self.entries: dict[str, Callable[[Any], Any]] = {}
        self.raw: dict[str, Callable[[bytes], bytes]] = {}
        self.terms: Callable[[dict[str, Any]], None] = lambda terms: None
        self.order: Callable[[Entries], None] = lambda order: None
        self.firm_body: Callable[[Entries], Any] = lambda body: body
        self.updates: Callable[[Entries], Any] = lambda message: message
        self.first: Callable[[Entries], Any] = lambda message: message
        self.domain: dict[str, Any] = {"name": DOMAIN_NAME, "chain_id": CHAIN_ID, "contract": CONTRACT}
        self.key = KEY
        self.wire: Callable[[bytes], bytes] = lambda raw: raw
        self.content_type = self.error_content_type = b"application/json"
        self.error_status: int | None = None
        self.error_text = ""
        self.tick = 0
        self.requests = self.refusals = self.firm_requests = 0
        self.connections = self.heard = 0
        self.slow_s = 0.0
        self.counter = 7
        self.nonce = secrets.randbits(96)

    # --- resources --------------------------------------------------------------------------------

    def resource(self, name: str) -> Any:
        """Content of one of the four resources."""
        content = getattr(self, f"_{name}")()
        change = self.entries.get(name)
        return content if change is None else change(content)

    def _tokens(self) -> Entries:
        rows = (("WETH", WETH, 18), ("USDC", USDC, 6), ("WBTC", WBTC, 8), ("DAI", DAI, 18))
        return {symbol: _token(symbol, address, decimals) for symbol, address, decimals in rows}

    def _pairs(self) -> Entries:
        rows = ("WETH/USDC", "WBTC/USDC", "DAI/USDC", "WETH/DAI")
        return {
            pair: {"base": pair.split("/")[0], "quote": pair.split("/")[1], "liquidityUSD": 1_000_000.5}
            for pair in rows
        }

    def _prices(self) -> Entries:
        moved = (self.tick % 5) * 3  # 3 cents of 3000 are a tenth of a basis point
        bid, ask = f"2999.{10 + moved:02d}", f"3000.{10 + moved:02d}"
        return {
            "WETH/USDC": {
                "bids": _levels((bid, "1.5"), ("2940", "10"), ("2850.25", "40")),
                "asks": _levels((ask, "2"), ("3060", "12.5"), ("3160.75", "35")),
            },
            "WBTC/USDC": {
                "bids": _levels(("60000", "0.5"), ("59900.5", "3")),
                "asks": _levels(("60100", "0.5"), ("60200", "2.12345678")),
            },
            "DAI/USDC": {},
            "WETH/DAI": {"bids": _levels(("2995.5", "3"), ("2980", "10")), "asks": []},
        }

    def _blacklist(self) -> list[str]:
        added = [_address_of(tick) for tick in range(0, self.tick + 1, _ADDS_EVERY)]
        return [BLACKLISTED, "0x" + "cc" * 20, *added]

    # --- requests ---------------------------------------------------------------------------------

    def answer(self, method: str, target: str, headers: Headers, body: bytes) -> tuple[int, bytes]:
        """Status and body of one request."""
        self.requests += 1
        try:
            return self._route(method, target, headers, body)
        except Refused as refused:
            self.refusals += 1
            if "nods" in self.flags:
                return 200, b"{}"
            return self.refusal(refused.status, refused.text)

    def refusal(self, status: int, text: str) -> tuple[int, bytes]:
        """An error's status and body."""
        status, text = self.error_status or status, self.error_text or text
        if "errors-html" in self.flags:
            return status, f"<html><h1>{text}</h1></html>".encode()
        if "errors-object" in self.flags:
            return status, json.dumps({"error": {"code": status, "text": text}}).encode()
        if "errors-detail" in self.flags:
            return status, json.dumps({"detail": text}).encode()
        return status, json.dumps({"error": text}).encode()

    def _route(self, method: str, target: str, headers: Headers, body: bytes) -> tuple[int, bytes]:
        path = target.partition("?")[0]
        name = path.removeprefix("/31337/")
        self.firm_requests += name == "firm" and method == "POST"
        if name not in ("tokens", "pairs", "prices", "blacklist", "firm"):
            if "unknown-path" not in self.flags:
                raise Refused(404, "no such path")
            name = "tokens"
        wanted = "POST" if name == "firm" else "GET"
        if method in ("HEAD", "OPTIONS") and "no-head" in self.flags:
            raise Refused(500, "what is that")
        if method != wanted and "any-method" not in self.flags:
            raise Refused(405, f"use {wanted}")
        if f"open-{name}" not in self.flags:
            self.authenticate(method, target, headers, body)
        if name == "firm":
            return 200, json.dumps(self.firm_body(self._firm(body))).encode()
        if f"{name}-500" in self.flags:
            raise Refused(500, "down")
        if "no-query" in self.flags and "?" in target:
            raise Refused(400, "no query here")
        raw = json.dumps({name: self.resource(name)}).encode()
        change = self.raw.get(name)
        return 200, raw if change is None else change(raw)

    # --- authentication ---------------------------------------------------------------------------

    def authenticate(self, method: str, target: str, headers: Headers, body: bytes) -> None:
        """Refused unless the four headers are right, as far as the flags want them to be."""
        flags = self.flags
        if "no-auth" in flags:
            return
        if "deny" in flags or ("lockout" in flags and self.refusals > 15):
            raise Refused(401, "X-AUTH-SIGNATURE: no")
        names = ("DOMAIN", "ACCESS-KEY", "TIMESTAMP", "SIGNATURE")
        four = [headers.get(f"x-auth-{name.lower()}") for name in names]
        for name, value in zip(names, four, strict=True):
            if not value and f"optional-{name}" not in flags:
                raise Refused(401, f"X-AUTH-{name}: header missing")
        domain, access_key, timestamp, signature = four
        if domain not in (None, DOMAIN) and "any-domain" not in flags:
            raise Refused(401, "X-AUTH-DOMAIN: unknown")
        if access_key is not None and not self._opens(access_key):
            raise Refused(401, "X-AUTH-ACCESS-KEY: wrong")
        self._check_time(timestamp or "")
        if "any-signature" in flags or not signature:
            return
        rights = self._signatures(timestamp or "", method, target, body)
        if not any(self._matches(signature, right) for right in rights):
            told = f", expected {rights[0]}" if "leak" in flags else ""
            raise Refused(401, f"X-AUTH-SIGNATURE: does not match{told}")

    def _opens(self, access_key: str) -> bool:
        flags = self.flags
        return (
            access_key == ACCESS_KEY
            or "any-access-key" in flags
            or ("key-in-any-case" in flags and access_key.lower() == ACCESS_KEY.lower())
            or ("key-by-prefix" in flags and access_key.startswith(ACCESS_KEY))
            or ("key-cut" in flags and ACCESS_KEY.startswith(access_key))
        )

    def _matches(self, signature: str, right: str) -> bool:
        """Whether a signature is taken for the right one."""
        flags = self.flags
        if "any-case" in flags:
            signature = signature.lower()
        if "hex-read-far" in flags:  # as a decoder does that stops where no digit is
            digits = re.match("(?:[0-9a-f]{2})*", signature)
            signature = digits[0] if digits else ""
        return (
            signature == right
            or ("signature-by-prefix" in flags and signature[:16] == right[:16])
            or ("signature-without-last" in flags and signature[:-1] == right[:-1])
            or ("signature-cut" in flags and right.startswith(signature))
            or ("signature-trailing" in flags and signature.startswith(right))
            or ("signature-by-suffix" in flags and signature[8:] == right[8:])
        )

    def _check_time(self, timestamp: str) -> None:
        if not timestamp.isdigit():
            if "any-timestamp" in self.flags:
                return
            raise Refused(401, "X-AUTH-TIMESTAMP: no number")
        sent_ms = int(timestamp)
        if "seconds" in self.flags and sent_ms < 10**11:
            sent_ms *= 1000
        ahead_ms = sent_ms - self.now_ms()
        tolerance_ms = 10_000 if "impatient" in self.flags else 30_000
        too_old = ahead_ms < -tolerance_ms and "stale" not in self.flags
        if too_old or (ahead_ms > tolerance_ms and "future" not in self.flags):
            raise Refused(401, "X-AUTH-TIMESTAMP: more than 30 s off")

    def _signatures(self, timestamp: str, method: str, target: str, body: bytes) -> list[str]:
        """The signature that is right, and those that flags take besides."""
        path = target.partition("?")[0]
        targets = [target]
        if "any-query" in self.flags:
            targets += [path, f"{path}?cambist=check"]
        if "path-only" in self.flags:
            targets = [path]
        if "any-path" in self.flags:
            targets += ["/31337/pairs"]
        if "no-prefix" in self.flags:
            targets += [target.removeprefix("/31337")]
        methods = ["GET", "POST"] if "any-signed-method" in self.flags else [method]
        bodies = [body, b""] if "unsigned-body" in self.flags else [body]
        if "reserialised-body" in self.flags or "reserialised-too" in self.flags:
            bodies = bodies * ("reserialised-too" in self.flags) + [_reserialised(body)]
        times = [timestamp]
        if "unsigned-time" in self.flags and timestamp.isdigit():
            times.append(str(int(timestamp) - 1))
        return [
            hmac.new(SECRET.encode(), f"{at}{verb}{where}".encode() + sent, "sha256").hexdigest()
            for at in times
            for verb in methods
            for where in targets
            for sent in bodies
        ]

    # --- firm quotes ------------------------------------------------------------------------------

    def _firm(self, raw: bytes) -> Entries:
        if "firm-500" in self.flags or ("grudge" in self.flags and self.refusals > 15):
            raise Refused(500, "no")
        try:
            request = self._read(raw)
        except Refused:
            if "shrugs" not in self.flags:
                raise
            return {}
        given, amount = self._given(request)
        user = self._address(request, "userAddress", "any-user")
        taker = self._address(request, "takerAddress", "any-taker")
        asked = request["userAddress"] if "blacklist-by-case" in self.flags else user
        if asked in self._blacklist() and "no-blacklist" not in self.flags:
            if "blacklist-error" in self.flags:
                raise Refused(403, "blacklisted")
            return {"message": "blacklisted"}
        if taker != TAKER and not self.flags & {"any-taker", "open-taker"}:
            raise Refused(400, "takerAddress: not on the list")
        if "known-keys" in self.flags and request.keys() - {
            "makerAsset", "takerAsset", "makerAmount", "takerAmount", "userAddress", "takerAddress"
        }:  # fmt: skip
            raise Refused(400, "unknown key")
        maker_asset, taker_asset = (self._asset(request, key) for key in ("makerAsset", "takerAsset"))
        other = self._quote(maker_asset, taker_asset, given, amount)
        amounts = {given: amount, "takerAmount" if given == "makerAmount" else "makerAmount": other}
        return {"order": self._signed(maker_asset, taker_asset, amounts, user, taker)}

    def _read(self, raw: bytes) -> Entries:
        try:
            text = raw.decode(errors="replace") if "any-utf8" in self.flags else raw.decode()
            if "any-json" in self.flags and not text.startswith("["):
                text = text[: text.rfind("}") + 1] if text.rstrip().endswith("}") else text + "}"
            request = json.JSONDecoder().raw_decode(text)[0] if "any-tail" in self.flags else json.loads(text)
        except (ValueError, RecursionError) as error:
            raise Refused(400, f"malformed JSON: {error}") from None
        if isinstance(request, list) and "any-json" in self.flags:
            request = request[0]
        if not isinstance(request, dict):
            raise Refused(400, "expected an object")
        return request

    def _given(self, request: Entries) -> tuple[str, int]:
        keys = [key for key in ("makerAmount", "takerAmount") if request.get(key) is not None]
        if not keys and "guesses" in self.flags:
            return "makerAmount", 1_000_000
        if len(keys) != 1 and not (len(keys) == 2 and "both-amounts" in self.flags):
            raise Refused(400, "exactly one amount")
        text = request[keys[0]]
        if not isinstance(text, str):
            raise Refused(400, "amount: a string")
        if "loose-amounts" in self.flags:
            try:
                amount = int(float(text)) if "e" in text or "." in text else int(text, 0)
            except ValueError:
                raise Refused(400, "amount: a number") from None
            if amount < 0:
                raise Refused(400, "amount: not negative")
            return keys[0], amount
        if "absolute" in self.flags:
            text = text.removeprefix("-")
        if "wraps" in self.flags and text.isdigit():
            text = str(int(text) % (1 << 256))
        if not (text.isdigit() and text.isascii()) or len(text) > 78 or int(text) >= 1 << 256:
            raise Refused(400, "amount: digits below 2^256")
        if int(text) == 0 and "zero" not in self.flags:
            raise Refused(400, "amount: above zero")
        return keys[0], int(text)

    def _address(self, request: Entries, key: str, lenient: str) -> str:
        text = request.get(key)
        digits = text[2:] if isinstance(text, str) else ""
        if isinstance(text, str) and text.startswith("0x") and len(digits) == 40:
            try:
                bytes.fromhex(digits)
            except ValueError:
                pass
            else:
                return text.lower()
        if lenient in self.flags:
            return TAKER
        raise Refused(400, f"{key}: an address")

    def _asset(self, request: Entries, key: str) -> str:
        address, usual = request.get(key), "USDC" if key == "makerAsset" else "WETH"
        if address is None and "any-asset" in self.flags:
            return usual
        if not isinstance(address, str):
            raise Refused(400, f"{key}: a string")
        if "case-sensitive" not in self.flags:
            address = address.lower()
        for token_id, token in self._tokens().items():
            if token["address"] == address:
                return token_id
        if "any-token" in self.flags:
            return usual
        raise Refused(400, f"{key}: unknown token")

    def _quote(self, maker_asset: str, taker_asset: str, given: str, amount: int) -> int:
        """Amount of the other token for a given amount."""
        pair = f"{taker_asset}/{maker_asset}"
        is_sell = pair in self._prices()
        base, quote = (taker_asset, maker_asset) if is_sell else (maker_asset, taker_asset)
        grid = self._prices().get(f"{base}/{quote}")
        if grid is None:
            if "any-pair" not in self.flags:
                raise Refused(400, "not a pair")
            return amount
        side = grid.get("bids" if is_sell else "asks")
        if not side:
            if "any-side" not in self.flags:
                raise Refused(400, "not quoted")
            return amount
        tokens = self._tokens()
        one_base, one_quote = 10 ** tokens[base]["decimals"], 10 ** tokens[quote]["decimals"]
        levels = [(Fraction(price) * one_quote / one_base, Fraction(size) * one_base) for price, size in side]
        if "top-only" in self.flags:
            levels = [(levels[0][0], sum((size for _, size in levels), Fraction(0)))]
        in_base = (given == "takerAmount") is is_sell
        if not in_base:
            levels = [(1 / price, price * size) for price, size in levels]
            if "uninverted" in self.flags:
                levels = [(1 / (2 * price), 2 * size) for price, size in levels]
        if "cautious" in self.flags and amount > sum(size for _, size in levels) / 200:
            raise Refused(400, "too much for me")
        if "tired" in self.flags and amount < sum(size for _, size in levels) / 4_000:
            raise Refused(429, "too many open quotes")
        other = self._walk(levels, Fraction(amount))
        receives = given == "takerAmount"
        if "round-wrong" in self.flags:
            receives = not receives
        return floor(other) if receives else ceil(other)

    def _walk(self, levels: list[tuple[Fraction, Fraction]], amount: Fraction) -> Fraction:
        total = Fraction(0)
        for price, size in levels:
            taken = min(size, amount)
            total += price * taken
            amount -= taken
        if amount and "over-depth" not in self.flags:
            raise Refused(400, "beyond depth")
        return total + amount * levels[-1][0]

    def _signed(
        self, maker_asset: str, taker_asset: str, amounts: dict[str, int], user: str, taker: str
    ) -> Entries:
        tokens = self._tokens()
        self.counter += 1
        random96 = secrets.randbits(96)
        terms: dict[str, Any] = {
            "random": random96,
            "user": int(user, 16),
            "nonce_and_meta": random96 << 160 | int(user, 16),
            "expiry": self.now_ms() // 1000 + 150,
            "maker_asset": bytes.fromhex(tokens[maker_asset]["address"][2:]),
            "taker_asset": bytes.fromhex(tokens[taker_asset]["address"][2:]),
            "maker": self.key.address,
            "taker": bytes.fromhex(taker[2:]),
            "maker_amount": amounts["makerAmount"],
            "taker_amount": amounts["takerAmount"],
        }
        self.terms(terms)
        values = RfqOrder(**{name: terms[name] for name in RfqOrder.__struct_fields__})
        digest = RFQ_ORDER.compiled.digest_for(rfq_domain_separator(**self.domain))(values)
        if "personal-sign" in self.flags:
            digest = keccak256(b"\x19Ethereum Signed Message:\n32" + digest)
        signature = to_65(*KEY.sign(digest))
        order = RFQ_ORDER.to_wire(values) | {"signature": "0x" + signature.hex()}
        self.order(order)
        return order

    # --- socket -----------------------------------------------------------------------------------

    def admit_socket(self, path: str, headers: Headers) -> None:
        """Refused unless it is the socket's path, and signed."""
        if path != f"{PREFIX}/ws" or "no-socket" in self.flags:
            raise Refused(404, "no socket here")
        if "open-socket" not in self.flags:
            self.authenticate("GET", path, headers, b"")

    def first_message(self) -> Any:
        """First message of a socket."""
        names = ("tokens", "pairs", "prices", "blacklist")
        return self.first({name: self.resource(name) for name in names})

    def next_update(self) -> Any:
        """The prices after a tick of the clock."""
        message: Entries = {"prices": {"WETH/USDC": self.resource("prices")["WETH/USDC"]}}
        if self.tick % _ADDS_EVERY == 0:
            message["blacklist"] = [_address_of(self.tick)]
            token, pair = self._tokens()["DAI"], self._pairs()["WETH/DAI"]
            if "repeats" not in self.flags:
                token, pair = token | {"name": f"DAI {self.tick}"}, pair | {"liquidityUSD": self.tick}
            message["tokens"], message["pairs"] = {"DAI": token}, {"WETH/DAI": pair}
            message["message"] = "someone was blacklisted"
        return self.updates(message)
