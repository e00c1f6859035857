"""`cambist hmac`: computes the request signature between service and market maker, for debugging by hand."""

import os
import re
import time
from typing import IO

import click

from ....config import limits
from ....config.errors import ConfigError, InvalidInput
from ....config.secret import Secret, SecretEncoding, read_secret
from ....crypto.hmac_auth import RequestSigner, decode_secret, request_payload
from .. import CommandGroup
from ..sources import read_bounded, secret_encoding

_METHOD = re.compile(r"[A-Za-z]{1,32}\Z")
_MISSING_PATH = "/"


@click.group(cls=CommandGroup)
def hmac() -> None:
    """Compute the signature headers of requests between a venue and a market maker."""


@hmac.command("sign")
@click.argument("method")
@click.argument("url")
@click.option("--domain", required=True, help="X-AUTH-DOMAIN: the traffic source.")
@click.option("--access-key", required=True, help="X-AUTH-ACCESS-KEY: the domain's access key.")
@click.option("--secret", required=True, help="The secret key: env:NAME, file:PATH, or the text itself.")
@secret_encoding
@click.option("--body", type=click.File("rb"), help="The request body's file, exactly as sent; - for stdin.")
@click.option(
    "--timestamp", type=click.IntRange(min=0), help="Milliseconds since the Unix epoch; now if absent."
)
@click.option("--explain", is_flag=True, help="Also print the exact payload that is signed, on stderr.")
def sign_command(
    *,
    method: str,
    url: str,
    domain: str,
    access_key: str,
    secret: str,
    secret_encoding: SecretEncoding,
    body: IO[bytes] | None,
    timestamp: int | None,
    explain: bool,
) -> None:
    """Print the four X-AUTH headers that sign a request.

    URL is absolute, or a path from / on. The query is signed exactly as written. A ws:// or wss:// URL is a
    WebSocket handshake: its path alone is signed, without the query.

    \b
    cambist hmac sign POST https://maker.example/1/firm \\
        --domain venue --access-key k1 --secret env:MAKER_SECRET \\
        --body firm.json --explain
    """
    if not _METHOD.match(method):
        raise InvalidInput(field="METHOD", expected="the name of an HTTP method", got=method)
    target = request_target(url)
    raw = b"" if body is None else read_bounded(body, limits.JSON_BYTES_MAX)
    timestamp_ms = time.time_ns() // 1_000_000 if timestamp is None else timestamp
    signer = RequestSigner(domain, access_key, decode_secret(_secret(secret).reveal(), secret_encoding))
    for name, value in signer.headers(timestamp_ms, method, target, raw).items():
        click.echo(f"{name}: {value}")
    if explain:
        payload = request_payload(timestamp_ms, method, target, raw)
        click.echo(
            f"signed payload, {len(payload)} bytes = timestamp {timestamp_ms} + method {method.upper()}"
            f" + target {target} + body of {len(raw)} bytes:",
            err=True,
        )
        click.echo(payload, err=True)


def request_target(url: str) -> str:
    """Return the request target that a client sends for a URL: path and query exactly as written.

    Raises:
        InvalidInput: the text is neither an http, https, ws or wss URL nor a path.
    """
    if url.startswith("/"):
        scheme, target = "http", url
    else:
        scheme, _, rest = url.partition("://")
        start = min((at for at in map(rest.find, "/?#") if at >= 0), default=len(rest))
        if scheme.lower() not in ("http", "https", "ws", "wss") or not start:
            raise InvalidInput(field="URL", expected="an http(s) or ws(s) URL, or a path from /", got=url)
        target = rest[start:]
    target = target.partition("#")[0]
    if not (target.isascii() and target.isprintable()) or " " in target:
        raise InvalidInput("percent-encode it", field="URL", expected="visible ASCII", got=url)
    if not target.startswith("/"):
        target = _MISSING_PATH + target
    return target.partition("?")[0] if scheme.lower() in ("ws", "wss") else target


def _secret(text: str) -> Secret:
    if text.startswith(("env:", "file:")):
        return read_secret(text, os.environ, "--secret")
    if not text:
        raise ConfigError("--secret", "is empty")
    return Secret(text, "the command line")
