"""Create the webhooks of the venue's settings, with the HTTP client that posts to them."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from random import Random
from ssl import SSLContext

import httpx
import trio

from ....codecs.http1 import Http1Limits
from ....codecs.messages.vocabulary import OrderStatus, OtcState
from ....config.error_text import shown
from ....config.errors import ConfigError
from ....config.limits import WEBHOOK_ANSWER_BYTES_MAX
from ....config.sections.webhooks import WebhookSettings
from ....config.timeouts import DIAL_S
from ....crypto.webhook_signature import WebhookSigner
from ....feeds.transport.httpx_transport import DialTransport
from ....feeds.transport.outward import HostLookUps, dial_outward
from ....feeds.transport.streams import Dial, dial
from ...store.leases import Leases
from ...store.store import Store
from ..orders.order_units import DELTA, OTC
from .deliveries import Hook
from .webhooks import Webhooks, shard_of

_LIMITS = Http1Limits(body_bytes_max=WEBHOOK_ANSWER_BYTES_MAX)
_STATUSES = {
    DELTA.name: frozenset(status.value for status in OrderStatus),
    OTC.name: frozenset(state.value for state in OtcState),
}


async def open_webhooks(
    owned: AsyncExitStack,
    settings: Mapping[str, WebhookSettings],
    store: Store,
    leases: Leases,
    *,
    tls: SSLContext,
    now_ms: Callable[[], int],
    random: Random,
) -> Webhooks:
    """Create the webhooks that the settings name; closing `owned` closes their HTTP connections.

    Args:
        settings: name of the webhook -> its settings.

    Raises:
        ConfigError: names the setting that is wrong.
    """
    hooks = hooks_of(settings)
    posts_max = sum(hook.posts_max for hook in hooks.values())  # all POSTs may go to one host
    inward = frozenset(_origin(said.url) for said in settings.values() if said.private_addresses)
    transport = DialTransport(
        tls=tls,
        connections_max=max(posts_max, 1),  # at least 1, also without webhooks
        limits=_LIMITS,
        dial=_dial_to(inward),
        needs_body=False,
    )
    http = await owned.enter_async_context(httpx.AsyncClient(transport=transport))
    return Webhooks(hooks, store, leases, http, now_ms=now_ms, random=random)


def _origin(url: str) -> tuple[str, int]:
    found = httpx.URL(url)
    return found.host, found.port or (443 if found.scheme == "https" else 80)


def _dial_to(inward: frozenset[tuple[str, int]]) -> Dial:
    """Make the function that opens connections to webhook receivers.

    Args:
        inward: (host, port) of the receivers that may have a private address; all others must have public
            ones.
    """
    look_ups = HostLookUps()

    async def dial_hook(
        host: str,
        port: int,
        *,
        tls: SSLContext | None,
        server_hostname: str | None = None,
        timeout_s: float = DIAL_S,
    ) -> trio.abc.Stream:
        if (host, port) in inward:
            return await dial(host, port, tls=tls, server_hostname=server_hostname, timeout_s=timeout_s)
        return await dial_outward(
            host,
            port,
            tls=tls,
            server_hostname=server_hostname,
            timeout_s=timeout_s,
            look_up=look_ups.addresses,
        )

    return dial_hook


def hooks_of(settings: Mapping[str, WebhookSettings]) -> dict[str, Hook]:
    """Convert the settings of webhooks to `Hook` objects, both by name of the webhook.

    Raises:
        ConfigError: names the setting that is wrong.
    """
    return {name: _hook(name, said) for name, said in settings.items()}


def _hook(name: str, said: WebhookSettings) -> Hook:
    field = f"venue.webhooks.{name}"
    known = frozenset[str]().union(*(_STATUSES[surface] for surface in said.surfaces))
    unknown = [status for status in said.statuses if status not in known]
    if unknown:
        kinds = " or ".join(dict.fromkeys(said.surfaces))
        raise ConfigError(
            f"{field}.statuses", f"expected statuses of {kinds} orders, got {shown(unknown[0])}"
        )
    try:
        _ = httpx.URL(said.url).host  # `host` decodes the name, which may fail although the URL is parsed
    except (httpx.InvalidURL, UnicodeError) as error:
        raise ConfigError(f"{field}.url", f"expected a URL that can be asked: {error}") from None
    try:
        sign = WebhookSigner(said.secret.reveal())
    except ConfigError as error:
        raise ConfigError(f"{field}.secret", error.detail.removeprefix("secret: ")) from None
    return Hook(
        name=name,
        url=said.url,
        sign=sign,
        surfaces=frozenset(said.surfaces),
        partner=said.partner,
        chains=frozenset(said.chains),
        statuses=frozenset(said.statuses),
        manager=said.api_key,
        posts_max=said.posts_max,
        post_s=said.post_s,
        give_up_ms=round(said.give_up_s * 1_000),
        shard=shard_of(name),
    )
