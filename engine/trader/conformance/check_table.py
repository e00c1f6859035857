"""Table of all conformance checks of a market maker, which docs/guides/maker-check.md shows.

A row is (name, title, fix), then its differences from the defaults of its group of rows: NEGATIVE, STRICT,
ADVICE, or another source. `rules.Check` explains these fields; a test keeps the table and the page equal.
"""

from collections.abc import Iterator

from .rules import Check, Severity, Transport

HTTP, SOCKET, BYTES, NODE = Transport.HTTP, Transport.WEBSOCKET, Transport.BYTES, Transport.NODE
NEGATIVE, STRICT, ADVICE = "negative", "strict", "advice"
STRICT_SOURCE = "interop.md 4, strict consumers"
LABELS = "RFC 9110 8.3; spec 3.1.10 asks for JSON, not for its label"
CheckRow = tuple[str, ...]


def _group(topic: str, transport: Transport, source: str, *rows: CheckRow) -> Iterator[Check]:
    for name, title, fix, *more in rows:
        severity = Severity.STRICT if STRICT in more else Severity.ADVICE if ADVICE in more else Severity.MUST
        own = [word for word in more if word not in (NEGATIVE, STRICT, ADVICE)]
        where = own[0] if own else STRICT_SOURCE if severity is Severity.STRICT else source
        yield Check(
            id=f"{topic}.{name}",
            title=title,
            source=where,
            fix=fix,
            transport=transport,
            negative=NEGATIVE in more,
            severity=severity,
        )


# fmt: off
_RUN = _group("run", HTTP, "the harness",
    ("complete", "every check was reached within the run's time", "answer faster, or raise --run-timeout"),
    ("speed", "half of the answers come within 500 ms", "keep the book in memory; consumers wait 0.5 to 4 s",
     ADVICE, "interop.md 4"),
)

_ENDPOINT_ROWS: tuple[CheckRow, ...] = (
    ("status", "GET /{} succeeds", "answer 200; an error is the off switch"),
    ("content-type", "GET /{} says that it is JSON", "send content-type: application/json", ADVICE, LABELS),
    ("json", "GET /{} is JSON", "send a JSON text in UTF-8 and nothing else"),
    ("shape", "GET /{} has its documented key", "wrap the entries in the documented key"),
)
_ENDPOINTS = tuple(
    check
    for name, rule in (
        ("tokens", "spec 3.7.1"), ("pairs", "spec 3.7.2"), ("prices", "spec 3.7.3"),
        ("blacklist", "spec 3.7.5"),
    )
    for check in _group(name, HTTP, rule,
                        *((row[0], row[1].format(name), *row[2:]) for row in _ENDPOINT_ROWS))
)

_RESOURCES = _group("resources", HTTP, "spec 3.1.14",
    ("message", "`message` is a string where it is given", "send text, or leave it out"),
    ("query", "a query is ignored: no endpoint has parameters", "ignore the query", ADVICE, "spec 3.7.7"),
    ("one-key", "no top-level key beside the documented one, `message` included", "drop the other keys",
     STRICT),
)

_TOKENS = _group("tokens", HTTP, "spec 3.2",
    ("unique-ids", "token ids are unique", "write each id once; a second one hides the first", "spec 3.2.2"),
    ("entry", "every token is an object", "send the documented members", "spec 3.2.1"),
    ("address", "addresses are well formed", "write 0x and 40 hexadecimal digits", "spec 3.2.6"),
    ("decimals", "decimals is an integer, 0 to 36", "send the contract's decimals() as a JSON integer",
     "spec 3.2.8"),
    ("type", "type is ERC20", "leave tokens of other types out", "spec 3.2.9"),
    ("texts", "symbol, name and description are strings", "send text", "spec 3.2.3 to 3.2.5"),
    ("unique-addresses", "no two ids are one contract", "keep one id per contract", ADVICE, "spec 3.2.2"),
    ("unknown-keys", "no keys beside the documented ones", "drop them", STRICT),
    ("decimals-zero", "no token has decimals 0", "leave such a token out", STRICT),
    ("description", "description is not empty", "write something", STRICT),
)

_PAIRS = _group("pairs", HTTP, "spec 3.3",
    ("unique-ids", "pair ids are unique", "write each id once; a second one hides the first", "spec 3.3.1"),
    ("entry", "every pair is an object", "send base, quote and liquidityUSD", "spec 3.3.1"),
    ("known-tokens", "base and quote are ids of /tokens", "list the token, or correct its id",
     "spec 3.3.3 and 3.3.4"),
    ("two-tokens", "base and quote differ", "remove the pair", "spec 3.3.3 and 3.3.4"),
    ("liquidity", "liquidityUSD is a number, at least 0", "send a JSON number", "spec 3.3.5"),
    ("one-direction", "each market is quoted in one direction, once",
     "keep one of the two; the reverse is derived", "spec 3.3.7"),
    ("id", "the pair id is BASE/QUOTE", "name it after its tokens' ids", ADVICE, "spec 3.3.2"),
    ("unknown-keys", "no keys beside the documented ones", "drop them", STRICT),
)

_PRICES = _group("prices", HTTP, "spec 3.4",
    ("unique-ids", "each pair has one entry", "write each pair once; a second entry hides the first",
     "spec 3.4.1"),
    ("known-pairs", "every entry's pair is listed in /pairs", "list the pair, or drop its prices",
     "spec 3.4.1"),
    ("grid-form", "every entry is an object", "send {bids, asks}, or {} to disable", "spec 3.4.1"),
    ("side-form", "bids and asks are arrays", "send an array, or leave the side out", "spec 3.4.2 and 3.4.3"),
    ("level-form", "a level is [price, amount]", "send exactly two elements", "spec 3.4.2 and 3.4.3"),
    ("strings", "price and amount are strings", "write numbers as decimal strings", "spec 3.4.4"),
    ("decimals", "price and amount are plain decimals",
     "digits with at most one point: no sign, exponent or space; at most 36 on either side", "spec 3.4.4"),
    ("positive", "price and amount are above zero", "drop levels of zero", "spec 3.4.4"),
    ("sorted", "the best price comes first", "sort bids falling and asks rising", "spec 3.8.5"),
    ("uncrossed", "the best ask is above the best bid", "widen the spread, or drop the levels that cross",
     "spec 3.8.6 and 3.8.7"),
    ("complete", "every listed pair has an entry", "send {} for a disabled pair", ADVICE, "spec 3.6.2"),
    ("unknown-keys", "no keys beside bids and asks", "drop them", STRICT),
    ("both-sides", "a pair has both bids and asks", "send [] for an empty side", STRICT),
)

_BLACKLIST = _group("blacklist", HTTP, "spec 3.7.5",
    ("addresses", "addresses are well formed", "write 0x and 40 hexadecimal digits"),
    ("unique", "no address stands twice, in any case", "remove duplicates", "spec 3.7.6"),
)

_LIFE = _group("life", HTTP, "spec 3.6.2",
    ("retired", "a removed pair was disabled first", "serve {} for its prices for a while, then remove it"),
)

_ERRORS = _group("errors", HTTP, "spec 3.12.1",
    ("content-type", "errors say that they are JSON", "send content-type: application/json", ADVICE, LABELS),
    ("json", "errors are JSON", "answer {\"error\": \"...\"} from every layer, the proxy's too"),
    ("text", "errors carry an `error` string", "add it, and say what was wrong"),
    ("unknown-path", "an unknown path is refused", "answer 404", NEGATIVE),
    ("wrong-method", "a wrong method is refused", "answer 405", NEGATIVE),
    ("head", "HEAD does not break the connection", "answer as GET without the body, or 405", ADVICE,
     "RFC 9110 9.3.2"),
    ("options", "OPTIONS does not break the connection", "answer 204, or 405", ADVICE, "RFC 9110 9.3.7"),
)

_FIRM = _group("firm", HTTP, "spec 3.5",
    ("quotes", "a displayed amount is quoted",
     "quote what the grid shows; give --taker if the maker allows some takers only", "spec 3.9"),
    ("order-present", "a success carries `order`",
     "refuse with an error; only a blacklisted user gets no order", "spec 3.7.4"),
    ("order-form", "the order has its nine members",
     "send every member, amounts as strings, expiry as a JSON integer"),
    ("echo-assets", "makerAsset and takerAsset are as requested", "echo them", "spec 3.5.7 and 3.5.8"),
    ("echo-taker", "taker is the request's takerAddress", "sign for the taker that was asked for",
     "spec 3.5.13"),
    ("echo-amount", "the given amount comes back as passed", "never shrink or round the given amount",
     "spec 3.5.14 and 3.5.15"),
    ("price-sell-base", "selling base fills against bids", "walk the bids, weighted by fill",
     "spec 3.8.8 and 3.8.10"),
    ("price-buy-base", "buying base fills against asks", "walk the asks, weighted by fill",
     "spec 3.8.9 and 3.8.10"),
    ("price-sell-quote", "an amount of quote to sell inverts the asks", "price 1/p, amount p x a",
     "spec 3.8.11 to 3.8.13"),
    ("price-buy-quote", "an amount of quote to buy inverts the bids", "price 1/p, amount p x a",
     "spec 3.8.11 to 3.8.13"),
    ("rounding", "with still prices the amount is exact",
     "round what the user receives down, what he pays up",
     ADVICE, "interop.md 4"),
    ("deep", "half of the displayed depth is quoted", "display what you will sign", ADVICE, "spec 3.9"),
    ("address-case", "addresses are taken in any case", "normalise addresses before comparing", "spec 3.9.9"),
    ("unknown-keys", "unknown keys of the request are ignored", "ignore them: `partner` and others are sent",
     "interop.md 4"),
    ("over-asked-sell", "1 % more than needed is quoted on a sell", "quote the amount as asked",
     "spec 3.9.10; interop.md 4"),
    ("over-asked-buy", "1 bp more than needed is quoted on a buy", "quote the amount as asked",
     "spec 3.9.10; interop.md 4"),
    ("user", "the user is in the lower 160 bits of nonceAndMeta",
     "random number shifted left by 160, plus the address", "spec 3.5.2"),
    ("nonce-set", "the upper 96 bits of nonceAndMeta are not zero", "put a random number there",
     "spec 3.5.3"),
    ("nonce-distinct", "no two quotes have the same upper 96 bits", "draw anew for every quote",
     "spec 3.5.3"),
    ("nonce-unforeseeable", "the upper 96 bits cannot be foreseen", "use the system's secure randomness",
     "spec 3.5.3"),
    ("expiry-life", "the order lives for at least 2 minutes", "set expiry to now + 120 s or more",
     "spec 3.5.6"),
    ("expiry-unit", "expiry is in seconds", "divide milliseconds by 1000", "spec 3.5.5"),
    ("expiry-far", "the order lives for at most a day", "bound what you promise", ADVICE, "prudence"),
    ("signature-form", "the signature is 0x and lower-case hexadecimal", "write it in lower case",
     "spec 3.5.16"),
    ("signature-length", "the signature has 65 bytes, or 64", "send r, s, v, or the compact form",
     "interop.md 1"),
    ("signature-v", "v is 27 or 28", "add 27 to the recovery id", "interop.md 1"),
    ("signature-low-s", "s is in the lower half", "negate s and flip v", "EIP-2; interop.md 1"),
    ("signature", "the maker signed the order for the domain",
     "check name, version, chainId, verifyingContract, the members' order; a contract maker needs --node-url",
     "spec 3.5.17, 2.3.12 to 2.3.15"),
    ("blacklisted", "a blacklisted user, in any case, gets a success without `order`", "answer 200 {}",
     "spec 3.9.11"),
    ("one-key", "no key beside the documented ones, in the answer and in the order",
     "drop the others", ADVICE, "spec 3.7.4"),
)

_CHAIN = _group("chain", NODE, "spec 3.5.10",
    ("id", "the node is on the chain of --chain-id", "give the node and chain that belong together",
     "the harness"),
    ("contract-signature", "a contract maker accepts its signature", "sign with an owner; see EIP-1271",
     "EIP-1271"),
    ("decimals", "a token's decimals are those of its contract", "send the contract's decimals()",
     "spec 3.2.8"),
    ("balance", "the maker holds more than makerAmount", "fund it, or quote less", "interop.md 4"),
    ("allowance", "the maker approved the RFQ contract for more than makerAmount",
     "approve the RFQ contract, not the router"),
)

_FAILURES = "spec 3.9.14"
_REFUSE = tuple(_group("refuse", HTTP, _FAILURES, *((*row, NEGATIVE) for row in (
    ("both-amounts", "both amounts are refused", "take exactly one", "spec 3.9.3"),
    ("no-amount", "a request without an amount is refused", "take exactly one", "spec 3.9.3"),
    ("unknown-token", "a token that is not listed is refused", "look both tokens up", "spec 3.9.1 and 3.9.2"),
    ("same-token", "one token twice is refused", "look the pair up"),
    ("unlisted-pair", "tokens that no pair joins are refused", "look the pair up"),
    ("disabled-pair", "a disabled pair is refused", "sign nothing while you serve {}", "spec 3.8.3"),
    ("silent-side", "a side that is not displayed is refused", "sign nothing for it", "spec 3.8.1"),
    ("over-depth", "ten times the depth is refused", "sign only what the grid holds"),
    ("zero-amount", "amount 0 is refused", "amounts are above zero", "spec 3.9.4"),
    ("negative-amount", "a negative amount is refused", "amounts are digits", "spec 3.9.4"),
    ("fraction", "a fraction is refused", "amounts are integers in raw units", "spec 3.9.4"),
    ("exponent", "an exponent is refused", "amounts are digits", "spec 3.9.4"),
    ("huge-amount", "2^256 and more is refused", "bound amounts to uint256 before you compute", "spec 3.9.4"),
    ("loose-amount", "a loosely written amount is refused",
     "take digits only: no spaces, signs, prefixes", "spec 3.9.4"),
    ("malformed-user", "a malformed userAddress is refused", "take 0x and 40 hexadecimal digits",
     "spec 3.9.6"),
    ("missing-user", "a missing userAddress is refused", "require it", "spec 3.9.6"),
    ("malformed-taker", "a malformed takerAddress is refused", "take 0x and 40 hexadecimal digits",
     "spec 3.9.7"),
    ("missing-taker", "a missing takerAddress is refused", "require it", "spec 3.9.7"),
    ("wrong-taker", "a taker that is on no list is refused", "check against /adapters/contract-takers",
     ADVICE, "spec 3.5.13"),
    ("missing-asset", "a missing asset is refused", "require both", "spec 3.9.1 and 3.9.2"),
    ("wrong-type", "members of a wrong JSON type are refused", "require strings", "spec 3.9.4"),
    ("malformed-json", "broken JSON is refused", "answer 400"),
    ("empty-body", "an empty body is refused", "answer 400"),
    ("not-an-object", "JSON that is no object is refused", "answer 400"),
    ("text-behind", "text behind the JSON is refused", "answer 400", ADVICE, "RFC 8259 2"),
    ("bad-utf8", "invalid UTF-8 is refused, in an unknown member too", "answer 400", ADVICE, "RFC 8259 8.1"),
    ("form-body", "a web form's body is refused", "the body is JSON"),
))))

_REFUSE_POSITIVE = _group("refuse", HTTP, "spec 3.9",
    ("recovers", "after all these a good request is quoted as before", "hold no grudge against a venue"),
)

_AUTH = _group("auth", HTTP, "spec 3.10",
    ("signed", "a right signature is taken on every endpoint", "see `cambist hmac sign --explain`",
     "spec 3.10.21"),
    ("within-tolerance", "a timestamp 25 s off is taken", "allow 30 s either way", "spec 3.10.22"),
    ("query-signed", "a signed query is taken", "sign the target as sent, `?` and all", "spec 3.10.12"),
    ("header-case", "the four headers are taken in any case", "compare header names without case",
     "RFC 9110 5.1"),
    ("body-raw", "a signature over a body as it was sent is taken",
     "sign over the raw bytes, not over what a parser made of them", "spec 3.10.13"),
    ("unsigned", "no endpoint answers an unsigned request", "verify before anything else", NEGATIVE,
     "spec 3.1.17"),
    ("missing-header", "each of the four headers is required", "refuse if one is missing", NEGATIVE,
     "spec 3.10.16 and 3.10.21"),
    ("wrong-secret", "another secret's signature is refused", "compare the whole signature", NEGATIVE,
     "spec 3.10.4"),
    ("whole-signature", "a signature that is right in part is refused",
     "compare all 64 digits, and the length", NEGATIVE, "spec 3.10.14"),
    ("wrong-access-key", "another access key is refused", "compare all of it, letter by letter",
     NEGATIVE, "spec 3.10.3"),
    ("wrong-domain", "another domain is refused", "look the domain up", NEGATIVE, "spec 3.10.2"),
    ("stale", "a timestamp 60 s old is refused", "refuse beyond 30 s", NEGATIVE, "spec 3.10.22"),
    ("future", "a timestamp 60 s ahead is refused", "refuse beyond 30 s, either way", NEGATIVE,
     "spec 3.10.22"),
    ("timestamp-unit", "a timestamp in seconds is refused", "milliseconds", NEGATIVE, "spec 3.10.6"),
    ("timestamp-text", "a timestamp that is no number is refused", "digits only", NEGATIVE, "spec 3.10.8"),
    ("timestamp-unsigned", "a timestamp that was not signed is refused", "sign over the header's value",
     NEGATIVE, "spec 3.10.8"),
    ("path-altered", "a signature of another path is refused", "sign over the path", NEGATIVE,
     "spec 3.10.10"),
    ("prefix-stripped", "a signature without the path's prefix is refused", "sign over the whole path",
     NEGATIVE, "spec 3.10.11"),
    ("query-added", "a query that was not signed is refused", "sign over the query", NEGATIVE,
     "spec 3.10.12"),
    ("query-dropped", "a query that was signed and not sent is refused", "sign over the query", NEGATIVE,
     "spec 3.10.12"),
    ("method-confused", "a signature of another method is refused", "sign over the method", NEGATIVE,
     "spec 3.10.9"),
    ("body-swapped", "a signature of another body is refused", "sign over the raw bytes", NEGATIVE,
     "spec 3.10.13"),
    ("upper-case", "an upper-case signature is refused", "compare as lower-case text", NEGATIVE, ADVICE,
     "spec 3.10.15"),
    ("no-leak", "no error tells the right signature", "never put it into an answer", NEGATIVE, "spec 3.10.5"),
    ("specific", "errors name the header at fault", "say which header, and why", NEGATIVE, ADVICE,
     "spec 3.10.23"),
)

_STREAM = _group("stream", SOCKET, "spec 3.11",
    ("handshake", "the handshake is accepted", "answer 101 at the URL, signed GET and path", "spec 3.10.24"),
    ("unsigned", "an unsigned handshake is refused", "verify before 101", NEGATIVE, "spec 3.1.17, 3.10.24"),
    ("wrong-signature", "a wrongly signed handshake is refused", "verify before 101", NEGATIVE,
     "spec 3.10.24"),
    ("object", "every message is a JSON object", "send objects", "spec 3.11.3"),
    ("keys", "messages carry documented keys only", "drop the others", ADVICE, "spec 3.11.4"),
    ("message", "`message` is a string where it is given", "send text, or leave it out", "spec 3.11.14"),
    ("no-order", "no message carries `order`", "never send it", "spec 3.11.5"),
    ("first-complete", "the first message has all four keys", "send everything first", "spec 3.11.6"),
    ("first-agrees", "the first message says what the endpoints say", "make both from one state",
     "spec 3.11.6"),
    ("entries", "tokens and pairs of updates are sound", "as GET /tokens and /pairs",
     "spec 3.11.9 and 3.11.10"),
    ("changes-only", "updates carry new or changed tokens and pairs only", "leave out what was sent before",
     "spec 3.11.7"),
    ("grids", "price grids over the socket are sound", "as GET /prices", "spec 3.11.12"),
    ("blacklist-new", "blacklist updates carry new addresses only", "send each once", "spec 3.11.13"),
    ("agrees", "the socket's prices are those of GET /prices", "send every change, whole grids",
     "spec 3.11.12"),
    ("follows", "prices that move reach the socket", "send every change of /prices",
     "spec 3.11.7 and 3.11.12"),
    ("stays", "the socket stays open while trading goes on",
     "keep it open; to stop trading, close and refuse", "spec 3.11.17"),
    ("one-way", "messages of a client do no harm", "ignore it, or close", "spec 3.11.1"),
    ("ping", "a ping is answered", "answer with a pong of the same content", "RFC 6455 5.5.2"),
    ("closes", "a close is answered", "close within 5 s", ADVICE, "RFC 6455 7.1.1"),
    ("reconnect", "a new connection begins with a complete message again", "keep no state per client",
     "spec 3.11.6"),
    ("after", "HTTP answers after clients came, misbehaved and left", "isolate connections"),
    ("strict-entries", "entries over the socket satisfy strict consumers", "as GET /tokens, /pairs, /prices",
     STRICT),
)

_HOSTILE = tuple(_group("hostile", BYTES, "RFC 9112", *((*row, NEGATIVE) for row in (
    ("garbage", "noise is refused", "answer 400 and close"),
    ("large-head", "a giant head is refused", "bound header bytes, count and path"),
    ("large-body", "a giant body is refused", "bound the body"),
    ("deep-json", "deep nesting is refused", "bound the nesting, or catch the parser's error"),
    ("two-lengths", "two Content-Lengths are refused", "answer 400 and close", "RFC 9112 6.3"),
    ("length-and-chunked", "Content-Length beside chunked is refused", "answer 400 and close",
     "RFC 9112 6.1"),
    ("bad-length", "a Content-Length that is no number is refused", "answer 400 and close", "RFC 9112 6.3"),
    ("bad-chunk", "a chunk size that is no number is refused", "answer 400 and close", "RFC 9112 7.1"),
    ("bad-head", "a broken head is refused", "answer 400 and close", "RFC 9112 2 to 5"),
    ("host-header", "a request without Host, or with two, is refused", "answer 400", ADVICE, "RFC 9112 3.2"),
    ("half-request", "a request that never ends stops nobody else", "serve connections concurrently"),
    ("survives", "an ordinary request is answered after each of these", "isolate connections; never exit"),
))))
_HOSTILE_POSITIVE = _group("hostile", BYTES, "RFC 9112",
    ("pipelined", "pipelined requests are answered in order", "answer in order, or close", "RFC 9112 9.3.2"),
    ("split-request", "a request that comes byte by byte is answered", "buffer until the head is complete",
     "RFC 9112 2.1"),
)

_FRAMING = _group("framing", BYTES, "RFC 9112", *((*row, ADVICE) for row in (
    ("version", "answers are of HTTP/1.1", "answer HTTP/1.1", "RFC 9112 2.3"),
    ("line-ends", "lines of an answer's head end in CRLF", "end each line in CRLF, not in LF alone",
     "RFC 9112 2.2"),
    ("folds", "no field is folded over lines", "write each field on one line", "RFC 9112 5.2"),
    ("colons", "no white space is ahead of a colon", "write the colon right after the name", "RFC 9112 5.1"),
    ("length", "an answer says its length once", "send one Content-Length, or chunked alone", "RFC 9112 6.3"),
    ("persists", "the connection stays open after an answer",
     "keep it open: each dial costs a quote its round trips", "RFC 9112 9.3"),
)))

_LOAD = _group("load", HTTP, "spec 3.9",
    ("answers", "every quote of the load is answered", "no 5xx, no time-outs, no dropped connections"),
    ("refusals", "no quote of the load is refused", "check limits on open quotes and rates", ADVICE),
    ("distinct-nonces", "no nonce comes twice under load",
     "share no random state between threads or processes", "spec 3.5.3"),
    ("drift", "quotes stay near the displayed grid", "quote from what you display", "spec 3.9.5"),
    ("latency", "p99 is at most 500 ms", "sign in process; keep the book in memory", ADVICE, "interop.md 4"),
)
# fmt: on

CHECKS: dict[str, Check] = {
    check.id: check
    for group in (
        _ENDPOINTS, _RESOURCES, _TOKENS, _PAIRS, _PRICES, _BLACKLIST, _LIFE, _ERRORS, _FIRM, _CHAIN, _REFUSE,
        _REFUSE_POSITIVE, _AUTH, _STREAM, _FRAMING, _HOSTILE, _HOSTILE_POSITIVE, _LOAD, _RUN,
    )
    for check in group
}  # fmt: skip
TOPICS = (
    "tokens", "pairs", "prices", "blacklist", "resources", "life", "errors", "firm", "chain", "refuse",
    "auth", "stream", "framing", "hostile", "load", "run",
)  # fmt: skip
