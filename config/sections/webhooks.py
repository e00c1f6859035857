"""Settings of webhooks: receivers to which the venue posts order events.

[venue.webhooks.acme]
url = "https://acme.example/orders"
secret = "env:ACME_WEBHOOK_SECRET"
partner = "acme"
api_key = "acme"

Choice: A webhook receives events of Delta orders unless its settings say otherwise, since events of OTC
    orders have other members.
Choice: A webhook's URL leads to public addresses alone unless its settings say otherwise: a partner resolves
    the host name and could point it into the venue's network.
Choice: `partner` with `otc` is refused: OTC orders have no partner.
"""

from typing import Annotated, Literal

import msgspec

from .. import limits, timeouts
from ..secret import Secret
from .endpoint_url import HTTP, check_url


class WebhookSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A webhook: the receiver of posted order events, its filter and its time-outs.

    Attributes:
        url: http or https URL to which events are posted.
        secret: `whsec_` and the base64 of 24 to 64 bytes, known to the receiver.
        surfaces: kinds of orders (`delta`, `otc`) whose events are posted.
        partner: partner to whose orders the webhook is limited; empty for all orders.
        chains: chain ids whose events are posted; empty names every chain.
        statuses: order statuses whose events are posted; empty names every status.
        api_key: name in `[venue.api_keys]` of the only key that may list and replay the webhook's deliveries;
            empty if no key may.
        posts_max: most posts under way at a time.
        post_s: time-out of one post, in seconds.
        give_up_s: seconds after an event in which its delivery is retried; a delivery without success in that
            time is given up (dead).
        private_addresses: whether the host of `url` may resolve to this machine or into a private network.
    """

    url: str
    secret: Secret
    surfaces: Annotated[tuple[Literal["delta", "otc"], ...], msgspec.Meta(min_length=1)] = ("delta",)
    partner: str = ""
    chains: tuple[int, ...] = ()
    statuses: tuple[str, ...] = ()
    api_key: str = ""
    posts_max: Annotated[int, msgspec.Meta(ge=1, le=limits.WEBHOOK_POSTS_MAX)] = 8
    post_s: Annotated[float, msgspec.Meta(gt=0, le=60)] = timeouts.WEBHOOK_POST_S
    give_up_s: Annotated[float, msgspec.Meta(gt=0, le=2_592_000)] = timeouts.WEBHOOK_GIVE_UP_S
    private_addresses: bool = False

    def __post_init__(self) -> None:
        check_url("url", self.url, HTTP)
        if self.partner and "otc" in self.surfaces:
            raise ValueError("surfaces has no otc where partner is set: OTC orders have no partner")
