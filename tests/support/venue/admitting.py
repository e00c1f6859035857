"""Calls and settings for admission, without a server."""

from collections.abc import Mapping
from typing import Literal

from cambist.codecs.http1 import Request
from cambist.config.secret import Secret
from cambist.config.sections.venue import ApiKey, Rate, RateTier, VenueSettings
from cambist.engine.host.admission.admission import Admission
from cambist.engine.host.admission.buckets import Buckets
from cambist.engine.host.admission.ledger import Ledger
from cambist.engine.host.admission.signatures import SignatureBudget, SignatureUnits
from cambist.engine.host.server import HttpCall

NOW_MS = 1_700_000_000_000
SECRET32 = bytes(range(32))
ALICE_KEY, BOB_KEY, OPERATOR_KEY = "alice-4f1c", "bob-77aa", "operator-90de"


def a_call(
    client: str = "192.0.2.7",
    headers: Mapping[str, str] | None = None,
    *,
    now_ms: int = NOW_MS,
    target: bytes = b"/",
    x_api_key: str | None = None,
) -> HttpCall:
    """A GET."""
    path, _, query = target.partition(b"?")
    fields = {name.encode(): value.encode("latin-1") for name, value in (headers or {}).items()}
    if x_api_key is not None:
        fields[b"x-api-key"] = x_api_key.encode("latin-1")
    request = Request(
        b"GET", target, path, query or None, 1, [*fields.items()], keep_alive=True, fields=fields
    )
    return HttpCall(request, client, "id-1", now_ms, ())


def signatures(burst: float = 1_000, *, now_ms: int = NOW_MS) -> SignatureBudget:
    """Budget of the first request of a caller."""
    return SignatureBudget(SignatureUnits(Buckets(Rate(per_s=1, burst=burst))), "somebody", now_ms)


def an_admission(
    *,
    public: RateTier | None = None,
    keyed: RateTier | None = None,
    trusted_proxies: tuple[str, ...] = (),
    unknown_api_keys: Literal["anonymous", "refuse"] = "anonymous",
    **tiers: RateTier,
) -> Admission:
    """Keys of Alice, of the tier `keyed` and the partner acme, of Bob, of `bulk` if there is such a tier, and
    of the operator.
    """
    rate_tiers = {
        "public": public or RateTier(per_s=1, burst=2),
        "keyed": keyed or RateTier(per_s=10, burst=5),
        **tiers,
    }
    keys = {
        "alice": ApiKey(secret=Secret(ALICE_KEY, "env:A"), partner="acme"),
        "bob": ApiKey(secret=Secret(BOB_KEY, "env:B"), tier="bulk" if "bulk" in tiers else "keyed"),
        "operator": ApiKey(secret=Secret(OPERATOR_KEY, "env:O"), operator=True),
    }
    settings = VenueSettings(
        rate_tiers=rate_tiers,
        api_keys=keys,
        trusted_proxies=trusted_proxies,
        unknown_api_keys=unknown_api_keys,
    )
    return Admission(settings, SECRET32, Ledger())
