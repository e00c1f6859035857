"""The planted faults of the maker, each with exactly the checks that must fail."""

import gzip
import json
from collections.abc import Callable
from typing import Any

from cambist.crypto.secp256k1 import CURVE_ORDER
from cambist.engine.trader.conformance.checks.resources import RESOURCES
from support.conformance.faulty_maker import BLACKLISTED, USDC, WETH, Maker
from support.conformance.faulty_planting import (
    FRAMING,
    HOSTILE,
    STREAM,
    Apply,
    Planted,
    body,
    domain,
    entry,
    flagged,
    grid,
    order,
    plant,
    terms,
    update,
)


def _set(name: str, value: object) -> Callable[[Maker, dict[str, Any]], None]:
    def change(maker: Maker, signed: dict[str, Any]) -> None:
        del maker
        signed[name] = value

    return change


def _scale(key: str, factor: float) -> Callable[[Maker, dict[str, Any]], None]:
    def change(maker: Maker, signed: dict[str, Any]) -> None:
        del maker
        signed[key] = int(signed[key] * factor)

    return change


def _swap_layout(maker: Maker, signed: dict[str, Any]) -> None:
    del maker
    signed["nonce_and_meta"] = signed["user"] << 96 | signed["random"]


def _count(maker: Maker, signed: dict[str, Any]) -> None:
    signed["nonce_and_meta"] = maker.counter << 160 | signed["user"]


def _stride(maker: Maker, signed: dict[str, Any]) -> None:
    signed["nonce_and_meta"] = (maker.nonce + (maker.counter << 72)) % (1 << 96) << 160 | signed["user"]


def _clock(maker: Maker, signed: dict[str, Any]) -> None:
    signed["nonce_and_meta"] = (maker.now_ms() * 1000 + maker.counter) << 190 & (1 << 256) - 1 | signed[
        "user"
    ]


def _repeat(maker: Maker, signed: dict[str, Any]) -> None:
    if maker.counter % 5 == 0:
        signed["random"] = maker.nonce
    signed["nonce_and_meta"] = signed["random"] << 160 | signed["user"]


def _swap_assets(maker: Maker, signed: dict[str, Any]) -> None:
    del maker
    signed["maker_asset"], signed["taker_asset"] = signed["taker_asset"], signed["maker_asset"]


def _changed(key: str, change: Callable[[Any], object]) -> Callable[[dict[str, Any]], None]:
    return lambda wire: wire.update({key: change(wire[key])})


def _clock_off(ahead_s: int) -> Apply:
    def apply(maker: Maker) -> None:
        right_ms = maker.now_ms
        maker.now_ms = lambda: right_ms() + ahead_s * 1000

    return apply


def _late(ahead_s: int) -> Callable[[Maker, dict[str, Any]], None]:
    def change(maker: Maker, signed: dict[str, Any]) -> None:
        signed["expiry"] = maker.now_ms() // 1000 + ahead_s

    return change


def _high_s(wire: dict[str, Any]) -> None:
    raw = bytes.fromhex(wire["signature"][2:])
    s = CURVE_ORDER - int.from_bytes(raw[32:64], "big")
    wire["signature"] = "0x" + (raw[:32] + s.to_bytes(32, "big") + bytes([55 - raw[64]])).hex()


def _sets(**attributes: Any) -> Apply:
    """Plants attributes of the maker."""

    def apply(maker: Maker) -> None:
        for name, value in attributes.items():
            setattr(maker, name, value)

    return apply


def _answers(change: Callable[[dict[str, Any]], Any]) -> Apply:
    """Plants a change of the whole successful answer to a firm request."""
    return _sets(firm_body=change)


def _without(resource: str, key: str, requests: int = 0) -> Apply:
    """Plants that an entry of a resource is missing after so many requests."""

    def apply(maker: Maker) -> None:
        maker.entries[resource] = lambda content: {
            name: one for name, one in content.items() if name != key or maker.requests < requests
        }

    return apply


def _uneven(maker: Maker) -> None:
    maker.firm_body = lambda answer: answer if maker.counter % 40 else {"message": "later"}


def _replaced(resource: str, key: str, value: object) -> Planted:
    """An entry that is no object."""

    def apply(maker: Maker) -> None:
        maker.entries[resource] = lambda content: content | {key: value}

    return Planted(frozenset({f"{resource}.entry"}), apply, (f"{resource}.*",))


def _each(name: str) -> dict[str, Planted]:
    """Faults of a resource's answer as a whole."""
    only = (f"{name}.status", f"{name}.content-type", f"{name}.json", f"{name}.shape")

    def unlike(raw: bytes) -> Planted:
        def apply(maker: Maker) -> None:
            maker.raw[name] = lambda _: raw

        return Planted(frozenset({f"{name}.{'shape' if raw == b'{}' else 'json'}"}), apply, only)

    return {
        f"{name} down": flagged(f"{name}-500", f"{name}.status", only=only),
        f"{name} no JSON": unlike(b"<html>"),
        f"{name} cut short": unlike(b'{"'),
        f"{name} empty": unlike(b"{}"),
    }


def _twin(name: str) -> Callable[[bytes], bytes]:
    def change(raw: bytes) -> bytes:
        content = json.loads(raw)[name]
        key, value = next(iter(content.items()))
        twin = json.dumps({key: value})[1:-1].encode()
        return raw.replace(b'": {"', b'": {' + twin + b', "', 1)

    return change


_ADDRESS = "0x" + "Ab" * 20
_ENTRIES: dict[str, Planted] = {
    "token id twice": body("tokens", _twin("tokens"), "tokens.unique-ids"),
    "pair id twice": body("pairs", _twin("pairs"), "pairs.unique-ids"),
    "grid twice": body("prices", _twin("prices"), "prices.unique-ids"),
    "token address cut": entry("tokens", "DAI", {"address": "0x4444"}, "tokens.address"),
    "decimals as text": entry("tokens", "DAI", {"decimals": "18"}, "tokens.decimals"),
    "decimals 77": entry("tokens", "DAI", {"decimals": 77}, "tokens.decimals"),
    "decimals true": entry("tokens", "DAI", {"decimals": True}, "tokens.decimals"),
    "type NATIVE": entry("tokens", "DAI", {"type": "NATIVE"}, "tokens.type"),
    "symbol a number": entry("tokens", "DAI", {"symbol": 4}, "tokens.texts"),
    "base unknown": entry("pairs", "DAI/USDC", {"base": "GONE"}, "pairs.known-tokens"),
    "base is quote": entry("pairs", "DAI/USDC", {"base": "USDC"}, "pairs.two-tokens"),
    "liquidity as text": entry("pairs", "DAI/USDC", {"liquidityUSD": "5"}, "pairs.liquidity"),
    "liquidity negative": entry("pairs", "DAI/USDC", {"liquidityUSD": -5}, "pairs.liquidity"),
    "both directions": entry(
        "pairs", "USDC/WETH", {"base": "USDC", "quote": "WETH", "liquidityUSD": 1}, "pairs.one-direction"
    ),
    "prices of no pair": entry("prices", "GONE/USDC", {}, "prices.known-pairs"),
    "crossed": grid({"bids": [["61000", "1"]], "asks": [["60100", "1"]]}, "prices.uncrossed"),
    "locked": grid({"bids": [["60100", "1"]], "asks": [["60100.0", "1"]]}, "prices.uncrossed"),
    "bids rise": grid({"bids": [["59900", "1"], ["60000", "1"]], "asks": []}, "prices.sorted"),
    "asks fall": grid({"bids": [], "asks": [["60200", "1"], ["60100", "1"]]}, "prices.sorted"),
    "levels of numbers": grid({"bids": [[60000, 1]], "asks": []}, "prices.strings"),
    "level of three": grid({"bids": [["60000", "1", "2"]], "asks": []}, "prices.level-form"),
    "levels as objects": grid({"bids": [{"price": "60000", "amount": "1"}]}, "prices.level-form"),
    "exponent": grid({"bids": [["6e4", "1"]], "asks": []}, "prices.decimals"),
    "signed price": grid({"bids": [["+60000", "1"]], "asks": []}, "prices.decimals"),
    "amount zero": grid({"bids": [["60000", "0.0"]], "asks": []}, "prices.positive"),
    "price with a separator": grid({"bids": [["60,000", "1"]], "asks": []}, "prices.decimals"),
    "price that begins with a point": grid({"bids": [[".5", "1"]], "asks": []}, "prices.decimals"),
    "price with a space": grid({"bids": [["60000 ", "1"]], "asks": []}, "prices.decimals"),
    "price empty": grid({"bids": [["", "1"]], "asks": []}, "prices.decimals"),
    "price negative": grid({"bids": [["-60000", "1"]], "asks": []}, "prices.decimals"),
    "price zero": grid({"bids": [["0", "1"]], "asks": []}, "prices.positive"),
    "level without an amount": grid({"bids": [["60000"]], "asks": []}, "prices.level-form"),
    "sides as objects": grid({"bids": {"60000": "1"}, "asks": []}, "prices.side-form"),
    "grid an array": grid([["60000", "1"]], "prices.grid-form"),
    "liquidity null": entry("pairs", "DAI/USDC", {"liquidityUSD": None}, "pairs.liquidity"),
    "base and quote as addresses": entry(
        "pairs", "DAI/USDC", {"base": USDC, "quote": WETH}, "pairs.known-tokens"
    ),
    "token address without 0x": entry("tokens", "DAI", {"address": "d4" * 20}, "tokens.address"),
    "decimals with a fraction": entry("tokens", "DAI", {"decimals": 18.0}, "tokens.decimals"),
    "decimals negative": entry("tokens", "DAI", {"decimals": -1}, "tokens.decimals"),
    "type in lower case": entry("tokens", "DAI", {"type": "erc20"}, "tokens.type"),
    "type null": entry("tokens", "DAI", {"type": None}, "tokens.type"),
    "bids null": grid({"bids": None, "asks": []}, "prices.side-form"),
    "grid null": grid(None, "prices.grid-form"),
    "strict: a side missing": grid({"bids": [["60000", "1"]]}, "prices.both-sides", strict=True),
    "strict: key in a grid": grid({"bids": [], "asks": [], "t": 1}, "prices.unknown-keys", strict=True),
    "strict: key in a token": entry("tokens", "DAI", {"logo": "x"}, "tokens.unknown-keys", strict=True),
    "strict: decimals 0": entry("tokens", "DAI", {"decimals": 0}, "tokens.decimals-zero", strict=True),
    "strict: no description": entry("tokens", "DAI", {"description": ""}, "tokens.description", strict=True),
    "strict: key in a pair": entry("pairs", "DAI/USDC", {"fee": 1}, "pairs.unknown-keys", strict=True),
    "strict: message": body(
        "prices", lambda raw: raw[:-1] + b', "message": "hi"}', "resources.one-key", strict=True
    ),
    "message an object": body("tokens", lambda raw: raw[:-1] + b', "message": {}}', "resources.message"),
    "prices unwrapped": body(
        "prices", lambda raw: json.dumps(json.loads(raw)["prices"]).encode(), "prices.shape"
    ),
    "tokens behind a byte order mark": body("tokens", lambda raw: b"\xef\xbb\xbf" + raw, "tokens.json"),
    "tokens compressed": body("tokens", gzip.compress, "tokens.json"),
    "text behind tokens": body("tokens", lambda raw: raw + b"ok", "tokens.json"),
    "tokens in single quotes": body("tokens", lambda raw: raw.replace(b'"', b"'"), "tokens.json"),
    "an error with status 200": body("blacklist", lambda raw: b'{"error": "down"}', "blacklist.shape"),
    "blacklist by address": body("blacklist", lambda raw: b'{"blacklist": {}}', "blacklist.shape"),
    "prices not a number": body("prices", lambda raw: raw.replace(b'"0.5"', b"NaN"), "prices.json"),
    "tokens an array": body("tokens", lambda raw: b'{"tokens": []}', "tokens.shape"),
}


def _listed(addresses: list[str], *expects: str) -> Planted:
    def apply(maker: Maker) -> None:
        maker.entries["blacklist"] = lambda blacklist: [*blacklist, *addresses]

    return Planted(frozenset(expects), apply, ("blacklist.*",))


_WHOLE: dict[str, Planted] = {
    **{name: planted for resource in RESOURCES for name, planted in _each(resource).items()},
    "token an array": _replaced("tokens", "DAI", []),
    "pair null": _replaced("pairs", "DAI/USDC", None),
    "blacklisted twice": _listed([BLACKLISTED], "blacklist.unique"),
    "blacklisted twice, in two cases": _listed([_ADDRESS, _ADDRESS.lower()], "blacklist.unique"),
    "blacklisted nobody": _listed(["0x123"], "blacklist.addresses"),
    "prices hang": flagged("hang-prices", "prices.status", only=("prices.status",)),
    "errors are HTML": flagged("errors-html", "errors.json"),
    "errors without text": flagged("errors-detail", "errors.text"),
    "errors with status 200": Planted(
        frozenset({"errors.unknown-path", "errors.wrong-method", "refuse.both-amounts"}),
        _sets(error_status=200),
        ("errors.*", "refuse.both-amounts"),
    ),
    "errors are objects": flagged("errors-object", "errors.text"),
    "answers move elsewhere": plant("prices.status", only=("prices.status",))(
        _sets(wire=lambda raw: raw.replace(b" 200 ", b" 301 ", 1))
    ),
    "answers cut on the wire": plant("prices.status", only=("prices.status",))(
        _sets(wire=lambda raw: raw[:-5])
    ),
    "any path": flagged("unknown-path", "errors.unknown-path"),
    "any method": flagged("any-method", "errors.wrong-method"),
    "a pair removed while quoted": plant("life.retired")(_without("pairs", "WBTC/USDC", requests=5)),
}

_FIRM: dict[str, Planted] = {
    "domain of another chain": domain(chain_id=1),
    "domain of another name": domain(name="Cambist RFQ"),
    "domain of another contract": domain(contract=bytes(20)),
    "signature in upper case": order(
        _changed("signature", lambda text: "0x" + text[2:].upper()), "firm.signature-form"
    ),
    "signature with high s": order(_high_s, "firm.signature-low-s"),
    "signature with v 0": order(
        _changed("signature", lambda text: text[:-2] + ("00" if text.endswith("1b") else "01")),
        "firm.signature-v",
    ),
    "signature cut": order(_changed("signature", lambda text: text[:-4]), "firm.signature-length"),
    "signature of a text": flagged("personal-sign", "firm.signature", only=("firm.*",)),
    "signature without 0x": order(_changed("signature", lambda text: text[2:]), "firm.signature-form"),
    "nonce in hexadecimal": order(_changed("nonceAndMeta", lambda text: hex(int(text))), "firm.order-form"),
    "nonce a number": order(_changed("nonceAndMeta", int), "firm.order-form"),
    "expiry a string": order(_changed("expiry", str), "firm.order-form"),
    "expiry with a fraction": order(_changed("expiry", float), "firm.order-form"),
    "assets by name": order(_changed("makerAsset", lambda _: "USDC"), "firm.order-form"),
    "order in an array": plant("firm.order-present", only=("firm.*",))(
        _answers(lambda answer: answer | {"order": [answer["order"]]})
    ),
    "blacklisted user quoted": flagged("no-blacklist", "firm.blacklisted", only=("firm.*",)),
    "blacklist compared with case": flagged("blacklist-by-case", "firm.blacklisted", only=("firm.*",)),
    "maker is somebody else": order(_changed("maker", lambda _: WETH), "firm.signature"),
    "amount a number": order(_changed("makerAmount", int), "firm.order-form"),
    "no expiry": order(lambda wire: wire.__delitem__("expiry"), "firm.order-form"),
    "nonce layout swapped": terms(_swap_layout, "firm.user"),
    "nonce zero": terms(
        lambda maker, signed: signed.update(nonce_and_meta=signed["user"]),
        "firm.nonce-set",
        "firm.nonce-distinct",
        "firm.nonce-unforeseeable",
    ),
    "nonce a counter": terms(_count, "firm.nonce-unforeseeable"),
    "nonce in even steps": terms(_stride, "firm.nonce-unforeseeable"),
    "nonce a clock": terms(_clock, "firm.nonce-unforeseeable"),
    "nonce repeated": terms(_repeat, "firm.nonce-distinct"),
    "expiry in a minute": terms(_late(60), "firm.expiry-life"),
    "expiry in milliseconds": terms(_late(1_000_000_000_000_000), "firm.expiry-unit"),
    "expiry never": terms(_set("expiry", 0), "firm.expiry-life"),
    "taker not echoed": terms(_set("taker", bytes(20)), "firm.echo-taker"),
    "assets swapped": terms(_swap_assets, "firm.echo-assets"),
    "makerAmount shrunk by 1 %": terms(
        _scale("maker_amount", 0.99),
        "firm.echo-amount",
        "firm.price-sell-base",
        "firm.price-sell-quote",
    ),
    "takerAmount raised by 1 %": terms(
        _scale("taker_amount", 1.01),
        "firm.echo-amount",
        "firm.price-buy-base",
        "firm.price-buy-quote",
    ),
    "best price for any size": flagged(
        "top-only",
        "firm.price-sell-base",
        "firm.price-buy-base",
        "firm.price-sell-quote",
        "firm.price-buy-quote",
        only=("firm.*",),
    ),
    "inverted wrongly": flagged(
        "uninverted", "firm.price-sell-quote", "firm.price-buy-quote", only=("firm.*",)
    ),
    "addresses in one case": flagged("case-sensitive", "firm.address-case", only=("firm.*",)),
    "keys of the request refused": flagged("known-keys", "firm.unknown-keys", only=("firm.*",)),
    "never an order": plant("firm.order-present", only=("firm.*",))(
        _answers(lambda answer: {"message": "try again"})
    ),
    "order null": plant("firm.order-present", only=("firm.*",))(
        _answers(lambda answer: answer | {"order": None})
    ),
    "refuses all": flagged("firm-500", "firm.quotes", only=("firm.*",)),
    "blacklisted user an error": flagged("blacklist-error", "firm.blacklisted", only=("firm.*",)),
    "a two-hundredth of the depth at most": flagged(
        "cautious", "firm.over-asked-sell", "firm.over-asked-buy", only=("firm.*",)
    ),
    "worse than displayed under load": Planted(
        frozenset({"load.drift"}),
        terms(_scale("maker_amount", 0.99)).apply,
    ),
    "quotes one of forty badly": plant("load.answers")(_uneven),
    "nonce repeated under load": Planted(
        frozenset({"load.distinct-nonces"}),
        terms(_repeat).apply,
    ),
}

_REFUSE: dict[str, Planted] = {
    "both amounts taken": flagged("both-amounts", "refuse.both-amounts"),
    "any depth signed": flagged("over-depth", "refuse.over-depth"),
    "zero signed": flagged("zero", "refuse.zero-amount"),
    "a loose parser": flagged(
        "loose-amounts zero",
        "refuse.zero-amount",
        "refuse.fraction",
        "refuse.exponent",
        "refuse.loose-amount",
    ),
    "any taker": flagged("any-taker", "refuse.malformed-taker", "refuse.missing-taker"),
    "any user": flagged("any-user", "refuse.malformed-user", "refuse.missing-user", "refuse.wrong-type"),
    "any pair": flagged("any-pair", "refuse.unlisted-pair", "refuse.same-token"),
    "disabled pairs signed": flagged("any-side", "refuse.disabled-pair", "refuse.silent-side"),
    "broken JSON mended": flagged("any-json", "refuse.malformed-json", "refuse.not-an-object"),
    "refusals without text": flagged("errors-detail", "errors.text", only=("refuse.*", "errors.text")),
    "unreadable bodies shrugged off": flagged(
        "shrugs",
        "refuse.malformed-json",
        "refuse.empty-body",
        "refuse.form-body",
        "refuse.not-an-object",
    ),
    "amounts wrap at 2^256": flagged("wraps zero", "refuse.huge-amount", "refuse.zero-amount"),
    "minus signs dropped": flagged("absolute", "refuse.negative-amount"),
    "holds a grudge": flagged("grudge", "refuse.recovers"),
    "a missing amount guessed": flagged("guesses", "refuse.no-amount"),
    "an unknown token guessed": flagged("any-token", "refuse.unknown-token"),
    "a missing asset guessed": flagged("any-asset", "refuse.missing-asset"),
}

_AUTH: dict[str, Planted] = {
    "locks out after errors": flagged("lockout", "auth.signed", only=("auth.*",)),
    "right signatures refused": flagged(
        "deny", "auth.signed", "auth.within-tolerance", "auth.query-signed", "auth.header-case"
    ),
    "any word for a timestamp": flagged("any-timestamp", "auth.timestamp-text"),
    "stale taken": flagged("stale", "auth.stale", "auth.timestamp-unit"),
    "future taken": flagged("future", "auth.future"),
    "25 s refused": flagged("impatient", "auth.within-tolerance"),
    "seconds taken": flagged("seconds", "auth.timestamp-unit"),
    "body not signed": flagged("unsigned-body", "auth.body-swapped"),
    "timestamp not signed": flagged("unsigned-time", "auth.timestamp-unsigned"),
    "query not signed": flagged("any-query", "auth.query-added", "auth.query-dropped"),
    "query left out of what is signed": flagged("path-only", "auth.query-signed", "auth.query-added"),
    "path not signed": flagged("any-path", "auth.path-altered"),
    "prefix not signed": flagged("no-prefix", "auth.prefix-stripped"),
    "method not signed": flagged("any-signed-method", "auth.method-confused"),
    "any access key": flagged("any-access-key", "auth.wrong-access-key"),
    "any domain": flagged("any-domain", "auth.wrong-domain"),
    "domain optional": flagged("optional-DOMAIN", "auth.missing-header"),
    "signature optional": flagged("optional-SIGNATURE", "auth.missing-header"),
    "signature never compared": flagged(
        "any-signature",
        "auth.wrong-secret",
        "auth.timestamp-unsigned",
        "auth.path-altered",
        "auth.prefix-stripped",
        "auth.query-added",
        "auth.query-dropped",
        "auth.method-confused",
        "auth.body-swapped",
        "auth.whole-signature",
    ),
    "blacklist without a signature": flagged("open-blacklist", "auth.unsigned", "auth.wrong-secret"),
    "the right signature told": flagged("leak", "auth.no-leak"),
    "header names compared with case": flagged("headers-by-case", "auth.header-case"),
    "clock 20 s ahead": plant("auth.within-tolerance")(_clock_off(20)),
    "clock 20 s behind": plant("auth.within-tolerance")(_clock_off(-20)),
    "body re-serialised before it is verified": flagged(
        "reserialised-body", "auth.body-raw", "auth.body-swapped"
    ),
    "a re-serialised body taken too": flagged("reserialised-too", "auth.body-swapped"),
    "signature compared by its first half": flagged("signature-by-prefix", "auth.whole-signature"),
    "signature compared without its last digit": flagged("signature-without-last", "auth.whole-signature"),
    "signature compared without its first digits": flagged("signature-by-suffix", "auth.whole-signature"),
    "signature compared as far as it goes": flagged("signature-cut", "auth.whole-signature"),
    "bytes behind the signature": flagged("signature-trailing", "auth.whole-signature"),
    "signature read as far as it is hexadecimal": flagged("hex-read-far", "auth.whole-signature"),
    "access key in any case": flagged("key-in-any-case", "auth.wrong-access-key"),
    "access key with more behind it": flagged("key-by-prefix", "auth.wrong-access-key"),
    "access key cut": flagged("key-cut", "auth.wrong-access-key"),
    "authentication answers 500": Planted(
        frozenset({"auth.missing-header", "auth.stale"}),
        _sets(error_status=500),
        ("auth.missing-header", "auth.stale"),
    ),
}


PLANTED: dict[str, Planted] = _ENTRIES | _WHOLE | _FIRM | _REFUSE | _AUTH | STREAM | HOSTILE

ADVISED: dict[str, Planted] = {
    **FRAMING,
    **{
        f"{name} labelled HTML": Planted(
            frozenset({f"{name}.content-type"}), _sets(content_type=b"text/html"), (f"{name}.content-type",)
        )
        for name in RESOURCES
    },
    "errors labelled text": plant("errors.content-type")(_sets(error_content_type=b"text/plain")),
    "any taker of the right form": flagged("open-taker", "refuse.wrong-taker"),
    "errors that say nothing": plant("auth.specific")(_sets(error_text="no")),
    "signatures in any case": flagged("any-case", "auth.upper-case"),
    "HEAD and OPTIONS break": flagged("no-head", "errors.head", "errors.options"),
    "no deep quotes": flagged("cautious", "firm.deep", only=("firm.deep",)),
    "expiry in a year": terms(_late(31_536_000), "firm.expiry-far"),
    "rounds for the user": flagged("round-wrong", "firm.rounding", only=("firm.*",)),
    "a key beside the order": plant("firm.one-key", only=("firm.*",))(
        _answers(lambda answer: answer | {"quoteId": "7"})
    ),
    "refuses under load": flagged("tired", "load.refusals"),
    "another pair id": entry(
        "pairs", "DAI-WBTC", {"base": "DAI", "quote": "WBTC", "liquidityUSD": 1}, "pairs.id"
    ),
    "no entry for a disabled pair": plant("prices.complete")(_without("prices", "DAI/USDC")),
    "one contract, two ids": entry(
        "tokens", "WETH2", {"address": WETH, "decimals": 18, "type": "ERC20"}, "tokens.unique-addresses"
    ),
    "any Host, or none": flagged("any-host", "hostile.host-header", only=("hostile.host-header",)),
    "no query": flagged("no-query", "resources.query"),
    "invalid UTF-8 replaced": flagged("any-utf8", "refuse.bad-utf8"),
    "text behind the body": flagged("any-tail", "refuse.text-behind"),
    "another key in the updates": update(lambda message: message | {"type": "update"}, "stream.keys"),
}
"""Faults that fail no check: the harness advises on `expects` and on no other check."""

RETIRED_WELL = plant(only=("life.*",))(_without("pairs", "DAI/USDC", requests=5))
