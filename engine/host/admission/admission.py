"""Identifies callers and limits their rate: each request takes its cost from its caller's token bucket.

    X-API-KEY --known--> bucket of the key, of the key's tier
         |    --unknown--> as without a key, marked in the answer; or 401
         none --> bucket of the address, of the tier `public`

A second bucket of each caller bounds the number of wrong signatures that are checked (`signatures`). Both are
accounts of the ledger (`ledger`), as those of everything else that callers cost the venue.

The `RateLimit-*` headers of every answer, refusals included, show the tokens left in the bucket.

Source: spec 1.25.56 and 1.25.57; draft-ietf-httpapi-ratelimit-headers-06 (three fields of their own; later
drafts join them in one): RateLimit-Limit, -Remaining and -Reset; RFC 9110 10.2.3 (Retry-After).
Choice: `RateLimit-Limit` is the capacity of the bucket, and `RateLimit-Reset` the seconds until the bucket is
    full.
Choice: A request with an unknown API key is answered as one without and marked `x-api-key-status: unknown`,
    since clients carry keys of other services. Settings may refuse it; a route that needs a key does.
Choice: A request with an unknown key takes its cost from the bucket of its address, so that guesses of keys
    are not free.
Choice: X-Forwarded-For counts as far as trusted proxies wrote it: the caller is the right-most address that
    is not a proxy. An entry that is no address ends the search at the proxy that passed it on.
Choice: What is for this machine alone is refused to a request whose Host is a name other than `localhost`,
    since web pages can reach loopback addresses by names of their own (DNS rebinding).
"""

from collections.abc import Mapping
from functools import lru_cache

from msgspec import Struct
from msgspec.structs import replace

from ....config.errors import CambistError, RateLimited, UnknownApiKey
from ....config.sections.partners import ANON
from ....config.sections.venue import RateTier, VenueSettings
from ..server.addresses import address_share, canonical_address, network_of
from ..server.routing import CoroutineHandler, HttpCall, PlainHandler, Reply, StreamReply, host_name
from .keys import API_KEY_HEADER, KeyHolder, KeyRing
from .ledger import Causer, Ledger
from .signatures import SignatureBudget, SignatureUnits

ResponseHeaders = tuple[tuple[bytes, bytes], ...]

PUBLIC = "public"
_API_KEY = API_KEY_HEADER.lower().encode()
_FORWARDED_FOR = b"x-forwarded-for"
_ENTRY_BYTES_MAX = 64  # of X-Forwarded-For: an IPv6 address, its zone and a port
_ENTRIES_REMEMBERED = 4_096
_IS_UNKNOWN: ResponseHeaders = ((b"x-api-key-status", b"unknown"),)
_OWN_NAMES = (b"", b"localhost")  # a request of HTTP/1.0 may have no Host
_FORWARDED = (_FORWARDED_FOR, b"forwarded", b"via")


class AdmissionStatistics(Struct, frozen=True):
    """Counters of requests admitted and refused by rate limits, since the start of the process.

    Attributes:
        admitted, refused: number of requests, by rate tier.
        unknown_keys: number of requests with an unknown API key, refused or not.
        callers: number of callers with a token bucket now, by rate tier.
        wrong_signatures: wrong signatures that were checked, by rate tier.
        signatures_refused: requests refused without a check of their signatures, since the caller has sent
            too many wrong signatures before; by rate tier.
    """

    admitted: Mapping[str, int]
    refused: Mapping[str, int]
    unknown_keys: int
    callers: Mapping[str, int]
    wrong_signatures: Mapping[str, int]
    signatures_refused: Mapping[str, int]


class _Tier:
    """A rate tier: the token buckets of its callers, and counts of admitted and refused requests."""

    __slots__ = ("admitted", "buckets", "limit", "refused", "signatures")

    def __init__(self, ledger: Ledger, of_whom: str, rates: RateTier) -> None:
        self.buckets = ledger.rated(f"requests, {of_whom}", rates)
        self.signatures = SignatureUnits(ledger.rated(f"wrong signatures, {of_whom}", rates.signature_rate))
        self.limit = (b"ratelimit-limit", b"%d" % self.buckets.burst)
        self.admitted = 0
        self.refused = 0

    def take(self, caller: str, cost: int, now_ms: int, marks: ResponseHeaders = ()) -> ResponseHeaders:
        """Take `cost` tokens from a caller's rate-limit bucket.

        Returns:
            The `RateLimit-*` headers of the HTTP answer, then `marks`; the error has the same headers.

        Raises:
            RateLimited: the bucket holds too few tokens; the error has the seconds until a retry.
        """
        taken = self.buckets.take(caller, cost, now_ms)
        headers = (
            self.limit,
            (b"ratelimit-remaining", b"%d" % taken.left),
            (b"ratelimit-reset", b"%d" % taken.full_s),
            *marks,
        )
        if not taken.wait_s:
            self.admitted += 1
            return headers
        self.refused += 1
        error = RateLimited(f"retry in {taken.wait_s} s")
        error.is_over_rate = True
        error.retry_after_s = taken.wait_s
        error.headers = headers
        raise error


class Admission:
    """Identifies the caller of each HTTP request by API key or IP address; applies the caller's rate limit.

    Args:
        settings: rate tiers, API keys and trusted proxies.
        secret32: 32 random bytes, the key of the hashes under which this process keeps the API keys.
        ledger: ledger in which each caller's requests and wrong signatures count.

    Raises:
        ConfigError: an API key cannot be sent in a header, or two entries have the same key.
    """

    def __init__(self, settings: VenueSettings, secret32: bytes, ledger: Ledger) -> None:
        self._ring = KeyRing(settings.api_keys, secret32)
        self._public = _Tier(ledger, "of an address", settings.rate_tiers[PUBLIC])
        self._keyed = {
            name: _Tier(ledger, f"of a key of tier {name}", tier)
            for name, tier in settings.rate_tiers.items()
        }
        self._proxies = frozenset(canonical_address(address) for address in settings.trusted_proxies)
        self._refuses_unknown = settings.unknown_api_keys == "refuse"
        self._unknown_keys = 0

    def admit(self, call: HttpCall, cost: int) -> ResponseHeaders:
        """Take the cost of a request from its caller's token bucket.

        Args:
            cost: tokens, above 0.

        Returns:
            Headers to add to the request's answer.

        Raises:
            RateLimited: the bucket holds too few tokens, none of which was taken; the error has the seconds
                until a retry.
            UnknownApiKey: the key is unknown and the settings refuse such keys; the cost was taken from the
                bucket of the caller's address.
        """
        presented = call.request.fields.get(_API_KEY)
        if presented is None:
            return self._public.take(address_share(self.client(call)), cost, call.now_ms)
        try:
            holder = self._ring.find(presented)
        except UnknownApiKey as error:
            self._unknown_keys += 1
            # Taken before the key is refused: guesses of keys would otherwise be free.
            headers = self._public.take(address_share(self.client(call)), cost, call.now_ms, _IS_UNKNOWN)
            if not self._refuses_unknown:
                return headers
            error.headers = headers
            raise
        return self._keyed[holder.tier].take(holder.name, cost, call.now_ms)

    def plain(self, handler: PlainHandler, cost: int) -> PlainHandler:
        """Wrap a handler so that each request first takes `cost` tokens from its caller's bucket.

        The answer of the handler, or its error, gets the `RateLimit-*` headers.
        """
        admit = self.admit

        def admitted(call: HttpCall) -> Reply:
            headers = admit(call, cost)
            try:
                reply = handler(call)
            except CambistError as error:
                error.headers = headers
                raise
            return Reply(reply.status, reply.body, reply.headers + headers, reply.content_type)

        return admitted

    def coroutine(self, handler: CoroutineHandler, cost: int) -> CoroutineHandler:
        """Wrap a coroutine handler so that each request first takes `cost` tokens from its caller's bucket.

        The answer of the handler, or its error, gets the `RateLimit-*` headers.
        """
        admit = self.admit

        async def admitted(call: HttpCall) -> Reply | StreamReply:
            headers = admit(call, cost)
            try:
                reply = await handler(call)
            except CambistError as error:
                error.headers = headers
                raise
            return replace(reply, headers=reply.headers + headers)

        return admitted

    def client(self, call: HttpCall) -> str:
        """Return the IP address of the client that sent a request.

        The address is the connection's peer or, if that is a trusted proxy, the right-most address of
        X-Forwarded-For that is not a trusted proxy.
        """
        client = call.client
        if client not in self._proxies:
            return client
        for spaced in reversed(call.request.fields.get(_FORWARDED_FOR, b"").split(b",")):
            entry = spaced.strip()
            address = _address(entry) if len(entry) <= _ENTRY_BYTES_MAX else ""
            if not address:
                return client
            client = address
            if client not in self._proxies:
                return client
        return client

    def caller(self, call: HttpCall) -> str:
        """Return the caller whose rate limit counts an admitted request: `key NAME` or `address ADDRESS`."""
        holder = self._holder(call)
        return f"address {address_share(self.client(call))}" if holder is None else f"key {holder.name}"

    def causer(self, call: HttpCall) -> Causer:
        """Return the caller to which the cost of an admitted request is charged."""
        account = self.caller(call)
        return Causer(account, "" if self._holder(call) else self.network(call))

    def network(self, call: HttpCall) -> str:
        """Return the network of the client that sent a request: 256 IPv4 addresses, or an IPv6 /56."""
        return f"network {network_of(self.client(call))}"

    def partner(self, call: HttpCall) -> str:
        """Return the partner of a request's API key, which applies if the request itself names no partner.

        The result is empty if the request has no known key, or the key has no partner.
        """
        holder = self._holder(call)
        return "" if holder is None else holder.partner

    def sees_orders(self, call: HttpCall, partner: str | None = None) -> bool:
        """Whether a request may read orders of any owner, i.e. has an operator's or the partner's API key.

        Args:
            partner: partner whose orders the request reads; None for orders of all partners.
        """
        holder = self._holder(call)
        if holder is None:
            return False
        return holder.is_operator or (partner not in (None, "", ANON) and holder.partner == partner)

    def key(self, call: HttpCall) -> str:
        """Return the name of a request's API key in the settings; empty for no key or an unknown key."""
        holder = self._holder(call)
        return "" if holder is None else holder.name

    def required_key(self, call: HttpCall) -> str:
        """Return the name of a request's API key in the settings, for an endpoint that requires a key.

        Raises:
            UnknownApiKey: the request has no key, or an unknown key; the message names the case.
        """
        presented = call.request.fields.get(_API_KEY)
        if presented is None:
            raise UnknownApiKey("this route needs a key, the request has none")
        return self._ring.find(presented).name

    def check_operator(self, call: HttpCall) -> None:
        """Refuse a request without an operator's API key.

        Raises:
            UnknownApiKey: the request has no key, an unknown key, or a key that is not an operator's.
        """
        self.required_key(call)
        if not self.sees_orders(call):
            raise UnknownApiKey("this route needs an operator's key")

    def signatures(self, call: HttpCall) -> SignatureBudget:
        """Create the object by which a request takes signature checks from its caller's budget.

        The object is a context manager around the handling of the request.
        """
        holder = self._holder(call)
        if holder is None:
            return SignatureBudget(self._public.signatures, address_share(self.client(call)), call.now_ms)
        return SignatureBudget(self._keyed[holder.tier].signatures, holder.name, call.now_ms)

    def _holder(self, call: HttpCall) -> KeyHolder | None:
        """Return the caller that owns the request's API key; None if the request has no known key."""
        presented = call.request.fields.get(_API_KEY)
        try:
            return None if presented is None else self._ring.find(presented)
        except UnknownApiKey:
            return None

    def statistics(self) -> AdmissionStatistics:
        """Return the counters of admitted and refused requests since the start of the process."""
        tiers = [(PUBLIC, self._public), *self._keyed.items()]
        admitted, refused, callers, wrong, unseen = (dict.fromkeys(self._keyed, 0) for _ in range(5))
        for name, tier in tiers:
            admitted[name] += tier.admitted
            refused[name] += tier.refused
            callers[name] += len(tier.buckets)
            wrong[name] += tier.signatures.spent
            unseen[name] += tier.signatures.refused
        return AdmissionStatistics(admitted, refused, self._unknown_keys, callers, wrong, unseen)


def is_local(call: HttpCall) -> bool:
    """Whether a request comes from this machine: from a loopback address, without headers of a proxy.

    A browser's request for a page of another site names that page in `Origin`, and is not local. Neither is a
    request whose Host is a name other than `localhost`: a site can have its own name resolve to a loopback
    address, and its pages then read the answers as their own. An address as Host cannot be such a name.
    """
    client, fields, host = call.client, call.request.fields, host_name(call.request)
    is_loopback = client.startswith("127.") or client == "::1"
    is_own_name = host in _OWN_NAMES or host.startswith(b"[") or host.replace(b".", b"").isdigit()
    return is_loopback and is_own_name and not any(name in fields for name in (*_FORWARDED, b"origin"))


@lru_cache(_ENTRIES_REMEMBERED)
def _address(entry: bytes) -> str:
    """Extract the IP address, without port, from an entry of X-Forwarded-For; empty if the text has none."""
    text = entry.decode("latin-1")
    if text.startswith("["):
        text = text[1:].partition("]")[0]
    elif text.count(":") == 1:
        text = text.partition(":")[0]
    try:
        return canonical_address(text)
    except ValueError:
        return ""
