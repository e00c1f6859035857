"""Signatures of webhooks: the known answer of the scheme, and secrets that are none."""

import base64

import pytest

from cambist.config.errors import ConfigError
from cambist.crypto.webhook_signature import WebhookSigner, webhook_key

SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_a_delivery_is_signed_as_the_scheme_says() -> None:
    """The example is from the reference implementations of Standard Webhooks."""
    signer = WebhookSigner(SECRET)
    signature = signer("msg_p5jXN8AQM9LWM0D4loKWxJek", 1_614_265_330, b'{"test": 2432232314}')
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def whsec(count: int) -> str:
    return "whsec_" + base64.b64encode(bytes(count)).decode()


def test_secrets_have_24_to_64_bytes() -> None:
    assert [len(webhook_key(whsec(count))) for count in (24, 64)] == [24, 64]


@pytest.mark.parametrize(
    "secret",
    ["", "whsec_", whsec(23), whsec(65), whsec(32)[6:], "whsec_no base64!", "whsec_!" + whsec(32)[6:]],
)
def test_what_is_no_secret_is_refused_and_not_repeated(secret: str) -> None:
    with pytest.raises(ConfigError, match="24 to 64 bytes") as refused:
        webhook_key(secret)
    assert len(secret) <= len("whsec_") or secret not in str(refused.value)


def test_the_key_is_not_shown() -> None:
    assert repr(WebhookSigner(SECRET)) == "WebhookSigner(hidden)"
    with pytest.raises(TypeError):
        WebhookSigner(SECRET).__reduce__()
