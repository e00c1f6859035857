"""Sign webhook deliveries: HMAC-SHA256 over id, time and body.

    secret      whsec_ + base64 of 24 to 64 bytes
    signed      id . timestamp . body                       the three joined by dots
    signature   v1, + base64 of the HMAC                    `webhook-signature`

Source: Standard Webhooks 1.0.0, "Signature scheme" and "Symmetric".
"""

import base64
from hmac import digest
from typing import NoReturn

from ..config.errors import ConfigError
from ..config.limits import WEBHOOK_SECRET_BYTES_MAX, WEBHOOK_SECRET_BYTES_MIN

ID_HEADER = "webhook-id"
TIMESTAMP_HEADER = "webhook-timestamp"
SIGNATURE_HEADER = "webhook-signature"

_PREFIX = "whsec_"


def webhook_key(secret: str) -> bytes:
    """Decode the secret of a webhook, as exchanged with its receiver, to key bytes.

    Raises:
        ConfigError: the text is no webhook secret; the error does not repeat the text.
    """
    expected = (
        f"expected {_PREFIX} and the base64 of {WEBHOOK_SECRET_BYTES_MIN} to {WEBHOOK_SECRET_BYTES_MAX} bytes"
    )
    try:
        key = base64.b64decode(secret.removeprefix(_PREFIX), validate=True)
    except ValueError:
        key = b""
    if not secret.startswith(_PREFIX) or not WEBHOOK_SECRET_BYTES_MIN <= len(key) <= WEBHOOK_SECRET_BYTES_MAX:
        raise ConfigError("secret", expected)
    return key


class WebhookSigner:
    """Signer of the deliveries of one webhook. The repr holds no part of the key.

    Raises:
        ConfigError: `secret` is no webhook secret; the error does not repeat it.
    """

    __slots__ = ("_key",)

    def __init__(self, secret: str) -> None:
        self._key = webhook_key(secret)

    def __call__(self, webhook_id: str, timestamp_s: int, body: bytes) -> str:
        """Compute the header `webhook-signature` of a delivery.

        Args:
            webhook_id: id of the delivery, without dots.
            timestamp_s: time of this try to deliver, Unix seconds.
            body: body of the post.
        """
        return webhook_signature(self._key, webhook_id, timestamp_s, body)

    def __repr__(self) -> str:
        return "WebhookSigner(hidden)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a WebhookSigner is not pickled")


def webhook_signature(key: bytes, webhook_id: str, timestamp_s: int, body: bytes) -> str:
    """Compute the header `webhook-signature` of a delivery.

    Args:
        key: key bytes of the webhook's secret.
        webhook_id: id of the delivery, without dots.
        timestamp_s: time of this try to deliver, Unix seconds.
        body: body of the post.
    """
    signed = b"%b.%d.%b" % (webhook_id.encode("ascii"), timestamp_s, body)
    return "v1," + base64.b64encode(digest(key, signed, "sha256")).decode("ascii")
