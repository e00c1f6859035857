"""The caller that a request counts for, and the answer to it."""

import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from cambist.config.errors import ConfigError, NoRoute, RateLimited, UnknownApiKey
from cambist.config.secret import Secret
from cambist.config.sections.server import HealthSettings
from cambist.config.sections.venue import ApiKey, RateTier, VenueSettings
from cambist.config.settings import parse_settings
from cambist.engine.host.admission.admission import Admission, ResponseHeaders, is_local
from cambist.engine.host.admission.keys import KeyRing
from cambist.engine.host.admission.ledger import Ledger
from cambist.engine.host.server import HttpCall, Reply, StreamReply
from support.venue.admitting import ALICE_KEY, BOB_KEY, NOW_MS, SECRET32, a_call, an_admission

HELLO = Reply(200, b'"hello"', ((b"x-kept", b"1"),))


def hello(_: HttpCall) -> Reply:
    return HELLO


def left(headers: ResponseHeaders) -> int:
    return int(dict(headers)[b"ratelimit-remaining"])


class TestLimits:
    def test_an_answer_says_what_is_left(self) -> None:
        handler = an_admission().plain(hello, 1)
        first, second = handler(a_call()), handler(a_call())
        assert first.headers == (
            (b"x-kept", b"1"),
            (b"ratelimit-limit", b"2"),
            (b"ratelimit-remaining", b"1"),
            (b"ratelimit-reset", b"1"),
        )
        assert dict(second.headers)[b"ratelimit-remaining"] == b"0"
        assert dict(second.headers)[b"ratelimit-reset"] == b"2"
        assert HELLO.headers == ((b"x-kept", b"1"),), "a reply that is kept is not touched"
        assert (first.status, first.body, first.content_type) == (200, HELLO.body, HELLO.content_type)

    def test_beyond_it_is_429_until_it_says_and_the_handler_is_not_reached(self) -> None:
        reached: list[int] = []

        def count(call: HttpCall) -> Reply:
            reached.append(call.now_ms)
            return HELLO

        handler = an_admission(public=RateTier(per_s=0.25, burst=2)).plain(count, 2)
        handler(a_call())
        with pytest.raises(RateLimited) as refused:
            handler(a_call(now_ms=NOW_MS + 1_000))
        assert refused.value.status == 429
        assert refused.value.retry_after_s == 7
        assert refused.value.is_over_rate, "its connection pauses"
        assert RateLimited.retry_after_s == 1, "of this error alone"
        assert dict(refused.value.headers) == {
            b"ratelimit-limit": b"2", b"ratelimit-remaining": b"0", b"ratelimit-reset": b"7",
        }  # fmt: skip
        with pytest.raises(RateLimited):
            handler(a_call(now_ms=NOW_MS + 7_999))
        handler(a_call(now_ms=NOW_MS + 8_000))
        assert reached == [NOW_MS, NOW_MS + 8_000]

    def test_a_refusal_of_the_handler_says_what_is_left_too(self) -> None:
        def refuse(_: HttpCall) -> Reply:
            raise NoRoute

        with pytest.raises(NoRoute) as refused:
            an_admission().plain(refuse, 1)(a_call())
        assert left(refused.value.headers) == 1

    async def test_coroutines_and_streams_are_admitted_alike(self) -> None:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"x"

        async def answer(_: HttpCall) -> Reply:
            return HELLO

        async def stream(_: HttpCall) -> StreamReply:
            return StreamReply(content_type=b"text/plain", pieces=pieces(), endless=True)

        async def refuse(_: HttpCall) -> Reply:
            raise NoRoute

        admission = an_admission()
        reply = await admission.coroutine(answer, 1)(a_call())
        assert isinstance(reply, Reply)
        assert left(reply.headers) == 1
        assert HELLO.headers == ((b"x-kept", b"1"),)
        streamed = await admission.coroutine(stream, 1)(a_call())
        assert isinstance(streamed, StreamReply)
        assert left(streamed.headers) == 0
        assert streamed.endless
        with pytest.raises(RateLimited):
            await admission.coroutine(answer, 1)(a_call())
        with pytest.raises(NoRoute) as refused:
            await admission.coroutine(refuse, 1)(a_call("192.0.2.8"))
        assert left(refused.value.headers) == 1

    def test_counters_say_who_was_let_in(self) -> None:
        admission = an_admission()
        for _ in range(2):
            admission.admit(a_call(), 1)
        admission.admit(a_call(x_api_key=ALICE_KEY), 1)
        with pytest.raises(RateLimited):
            admission.admit(a_call(), 1)
        admission.admit(a_call("192.0.2.9", x_api_key="guess"), 1)
        found = admission.statistics()
        assert found.admitted == {"public": 3, "keyed": 1}
        assert found.refused == {"public": 1, "keyed": 0}
        assert found.callers == {"public": 2, "keyed": 1}
        assert found.unknown_keys == 1


class TestAddresses:
    @pytest.mark.parametrize(
        ("one", "other", "same"),
        [
            ("192.0.2.7", "192.0.2.8", False),
            ("2001:db8:0:1::1", "2001:db8:0:1:ffff::2", True),
            ("2001:db8:0:1::1", "2001:db8:0:2::1", False),
            ("fe80::1%eth0", "fe80::2%eth1", True),
        ],
    )
    def test_an_address_counts_alone_and_of_ipv6_a_64(self, one: str, other: str, same: bool) -> None:
        admission = an_admission()
        admission.admit(a_call(one), 2)
        if same:
            with pytest.raises(RateLimited):
                admission.admit(a_call(other), 1)
        else:
            assert left(admission.admit(a_call(other), 1)) == 1

    @pytest.mark.parametrize(
        ("client", "forwarded", "found"),
        [
            pytest.param("192.0.2.7", "1.1.1.1", "192.0.2.7", id="nobody trusts this one"),
            pytest.param("10.0.0.1", "1.1.1.1", "1.1.1.1", id="one proxy"),
            pytest.param("10.0.0.1", "9.9.9.9, 1.1.1.1", "1.1.1.1", id="what the client wrote itself"),
            pytest.param("10.0.0.1", "1.1.1.1, 10.0.0.2", "1.1.1.1", id="two proxies"),
            pytest.param("10.0.0.1", "9.9.9.9,1.1.1.1 ,10.0.0.2,10.0.0.2", "1.1.1.1", id="white space"),
            pytest.param("10.0.0.1", "10.0.0.2", "10.0.0.2", id="only proxies"),
            pytest.param("10.0.0.1", "1.1.1.1, unknown", "10.0.0.1", id="no address"),
            pytest.param(
                "10.0.0.1", "1.1.1.1, unknown, 10.0.0.2", "10.0.0.2", id="no address before a proxy"
            ),
            pytest.param("10.0.0.1", "", "10.0.0.1", id="empty"),
            pytest.param("10.0.0.1", None, "10.0.0.1", id="absent"),
            pytest.param("10.0.0.1", "1.1.1.1:4711", "1.1.1.1", id="a port"),
            pytest.param("10.0.0.1", "[2001:DB8::0:1]:4711", "2001:db8::1", id="IPv6 and a port"),
            pytest.param("10.0.0.1", "2001:DB8:0::1", "2001:db8::1", id="IPv6 in another spelling"),
            pytest.param("10.0.0.1", "::ffff:1.1.1.1", "1.1.1.1", id="IPv4 mapped"),
            pytest.param("2001:db8::a", "1.1.1.1", "1.1.1.1", id="an IPv6 proxy"),
            pytest.param("10.0.0.1", "1.1.1.1, 300.1.1.1", "10.0.0.1", id="no IPv4 address"),
            pytest.param("10.0.0.1", f"fe80::1%{'x' * 100}", "10.0.0.1", id="longer than an address"),
        ],
    )
    def test_the_caller_is_the_right_most_address_nobody_trusts(
        self, client: str, forwarded: str | None, found: str
    ) -> None:
        admission = an_admission(trusted_proxies=("10.0.0.1", "10.0.0.2", "2001:DB8:0:0::A"))
        headers = {} if forwarded is None else {"x-forwarded-for": forwarded}
        assert admission.client(a_call(client, headers)) == found

    def test_behind_a_proxy_each_caller_has_a_bucket(self) -> None:
        admission = an_admission(trusted_proxies=("10.0.0.1",))
        admission.admit(a_call("10.0.0.1", {"x-forwarded-for": "1.1.1.1"}), 2)
        assert left(admission.admit(a_call("10.0.0.1", {"x-forwarded-for": "1.1.1.2"}), 1)) == 1
        with pytest.raises(RateLimited):
            admission.admit(a_call("10.0.0.1", {"x-forwarded-for": "spoofed, 1.1.1.1"}), 1)

    def test_a_proxy_is_an_address(self) -> None:
        with pytest.raises(ConfigError, match=r"venue: trusted_proxies are IP addresses, got proxy\.example"):
            parse_settings('[venue]\ntrusted_proxies = ["proxy.example"]', {}, Path())

    @pytest.mark.parametrize(
        ("client", "headers", "local"),
        [
            ("127.0.0.1", {}, True),
            ("127.3.2.1", {}, True),
            ("::1", {}, True),
            ("192.0.2.7", {}, False),
            ("", {}, False),
            ("127.0.0.1", {"x-forwarded-for": "127.0.0.1"}, False),
            ("127.0.0.1", {"forwarded": "for=127.0.0.1"}, False),
            ("::1", {"via": "1.1 proxy"}, False),
            ("127.0.0.1", {"origin": "https://page.example"}, False),
            ("127.0.0.1", {"host": "127.0.0.1:8081"}, True),
            ("127.0.0.1", {"host": "LocalHost:8081"}, True),
            ("::1", {"host": "[::1]:8081"}, True),
            ("127.0.0.1", {"host": "page.example:8081"}, False),
            ("127.0.0.1", {"host": "localhost.page.example"}, False),
            ("127.0.0.1", {"host": "127.0.0.1.page.example"}, False),
        ],
    )
    def test_this_machine_is_loopback_without_a_proxy_or_a_foreign_page(
        self, client: str, headers: dict[str, str], local: bool
    ) -> None:
        assert is_local(a_call(client, headers)) is local


class TestKeys:
    def test_a_key_has_a_bucket_of_its_tier_wherever_it_comes_from(self) -> None:
        admission = an_admission(bulk=RateTier(per_s=100, burst=50))
        assert dict(admission.admit(a_call(x_api_key=ALICE_KEY), 4))[b"ratelimit-limit"] == b"5"
        assert left(admission.admit(a_call("192.0.2.8", x_api_key=ALICE_KEY), 1)) == 0
        with pytest.raises(RateLimited):
            admission.admit(a_call("192.0.2.9", x_api_key=ALICE_KEY), 1)
        assert left(admission.admit(a_call(x_api_key=BOB_KEY), 1)) == 49
        assert left(admission.admit(a_call(), 1)) == 1, "nothing was taken from the address"

    def test_the_partner_and_the_caller_are_the_keys(self) -> None:
        admission = an_admission()
        assert admission.partner(a_call(x_api_key=ALICE_KEY)) == "acme"
        assert admission.partner(a_call(x_api_key=BOB_KEY)) == ""
        assert admission.partner(a_call()) == ""
        assert admission.caller(a_call(x_api_key=ALICE_KEY)) == "key alice"
        assert admission.caller(a_call("192.0.2.7")) == "address 192.0.2.7"

    def test_guessing_keys_costs_and_tells_nothing(self) -> None:
        admission = an_admission(unknown_api_keys="refuse")
        for remaining in (1, 0):
            with pytest.raises(UnknownApiKey) as unknown:
                admission.admit(a_call(x_api_key="guess-123"), 1)
            assert unknown.value.status == 401
            assert str(unknown.value) == "X-API-KEY: unknown key"
            assert left(unknown.value.headers) == remaining
        with pytest.raises(RateLimited):
            admission.admit(a_call(x_api_key="guess-123"), 1)

    @pytest.mark.parametrize(
        "presented", ["", ALICE_KEY[:-1], ALICE_KEY + "x", ALICE_KEY.upper(), "\xff", "k" * 9_000]
    )
    def test_what_is_not_a_key_is_refused_and_not_repeated(self, presented: str) -> None:
        with pytest.raises(UnknownApiKey) as unknown:
            an_admission(unknown_api_keys="refuse").admit(a_call(x_api_key=presented), 1)
        assert not presented or presented not in unknown.value.detail

    def test_an_unknown_key_counts_as_none(self) -> None:
        admission, call = an_admission(), a_call(x_api_key="guess-123")
        for remaining in (1, 0):
            headers = admission.admit(call, 1)
            assert left(headers) == remaining
            assert dict(headers)[b"x-api-key-status"] == b"unknown"
        with pytest.raises(RateLimited) as limited:
            admission.admit(call, 1)
        assert dict(limited.value.headers)[b"x-api-key-status"] == b"unknown"
        assert admission.statistics().unknown_keys == 3
        assert admission.caller(call) == "address 192.0.2.7"
        assert (admission.key(call), admission.partner(call)) == ("", "")
        with admission.signatures(call) as budget:
            budget.wrong()
        assert admission.statistics().wrong_signatures["public"] == 1

    def test_a_route_that_needs_a_key_tells_a_missing_one_from_an_unknown_one(self) -> None:
        admission = an_admission()
        assert admission.required_key(a_call(x_api_key=ALICE_KEY)) == "alice"
        with pytest.raises(UnknownApiKey, match="this route needs a key, the request has none"):
            admission.required_key(a_call())
        with pytest.raises(UnknownApiKey, match="unknown key"):
            admission.required_key(a_call(x_api_key="guess-123"))

    def test_keys_are_nowhere_in_what_is_shown(self) -> None:
        ring = KeyRing({"alice": ApiKey(secret=Secret(ALICE_KEY, "env:A"))}, SECRET32)
        kept = [getattr(ring, name) for name in KeyRing.__slots__]
        assert ALICE_KEY not in f"{ring!r} {kept!r}"

    @pytest.mark.parametrize(
        ("secret", "reason"),
        [
            ("with space", "visible ASCII"),
            ("ümlaut", "visible ASCII"),
            ("", "visible ASCII"),
            ("k" * 300, "at most 256"),
        ],
    )
    def test_a_key_that_no_header_carries_is_refused_at_the_start(self, secret: str, reason: str) -> None:
        with pytest.raises(ConfigError, match=rf"venue\.api_keys\.a\.secret: .*{reason}") as refused:
            KeyRing({"a": ApiKey(secret=Secret(secret, "env:A"))}, SECRET32)
        assert not secret or secret not in str(refused.value)

    def test_two_keys_are_not_one_secret(self) -> None:
        keys = {name: ApiKey(secret=Secret("same", "env:A")) for name in "ab"}
        with pytest.raises(ConfigError, match=r"venue\.api_keys\.b\.secret: equals the secret of a"):
            KeyRing(keys, SECRET32)


def test_the_settings_of_the_docs_are_what_they_say() -> None:
    page = (Path(__file__).parents[5] / "docs" / "guides" / "operations.md").read_text(encoding="utf-8")
    health, sample, wrong = re.findall(r"^```toml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert parse_settings(health, {}, Path()).server.health == HealthSettings()
    rates = parse_settings(f"[venue]\n{wrong}", {}, Path()).venue
    assert rates is not None
    for name, tier in VenueSettings().rate_tiers.items():
        assert rates.rate_tiers[name].wrong_signatures == tier.signature_rate
    partner = f'\n[partners.acme]\naddress = "0x{"5a" * 20}"\n'
    environ = {"ACME_KEY": "issued-to-acme", "DESK_KEY": "of-the-desk"}
    venue = parse_settings(sample + partner, environ, Path()).venue
    assert venue is not None
    assert (venue.quote_streams_max, venue.metrics_open) == (
        VenueSettings().quote_streams_max,
        VenueSettings().metrics_open,
    )
    assert all(venue.rate_tiers[name] == tier for name, tier in VenueSettings().rate_tiers.items())
    admission = Admission(venue, SECRET32, Ledger())
    headers = dict(admission.admit(a_call("192.0.2.1", x_api_key="issued-to-acme"), 1))
    assert headers[b"ratelimit-limit"] == b"5000"
    acme, desk = a_call(x_api_key="issued-to-acme"), a_call(x_api_key="of-the-desk")
    assert admission.partner(acme) == "acme"
    assert (admission.sees_orders(acme), admission.sees_orders(acme, "acme")) == (False, True)
    assert (admission.sees_orders(desk), admission.sees_orders(a_call(), "acme")) == (True, False)
    assert admission.client(a_call("10.0.0.1", {"x-forwarded-for": "192.0.2.1"})) == "192.0.2.1"
