"""`cambist hmac sign`: the four headers of a request, as a maker would check them."""

import base64
import hmac
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from cambist.config.errors import InvalidInput
from cambist.crypto.hmac_auth import RequestVerifier
from cambist.engine.cli import cli
from cambist.engine.cli.offline.hmac_headers import request_target

SECRET = "correct horse battery staple"
CREDENTIALS = ("--domain", "venue", "--access-key", "k1")
AT = ("--timestamp", "1700000000000")


def run(*arguments: str, body: bytes = b"", **environ: str) -> Result:
    return CliRunner().invoke(cli, ["hmac", "sign", *arguments], input=body, env={"SECRET": SECRET} | environ)


def printed(result: Result) -> dict[str, str]:
    assert result.exit_code == 0, result.output
    return dict(line.split(": ", 1) for line in result.stdout.splitlines())


def digest(payload: bytes, key: bytes = SECRET.encode()) -> str:
    return hmac.new(key, payload, "sha256").hexdigest()


def test_known_answers(vectors: dict[str, Any], tmp_path: Path) -> None:
    for vector in vectors["hmac"]["vectors"]:
        headers, body = vector["headers"], tmp_path / "body"
        body.write_text(vector["body"])
        answer = printed(
            run(
                vector["method"], vector["url"], "--domain", headers["X-AUTH-DOMAIN"],
                "--access-key", headers["X-AUTH-ACCESS-KEY"], "--secret", "env:OTHER",
                "--timestamp", vector["timestamp"], "--body", str(body), OTHER=vector["secretKey"],
            )
        )  # fmt: skip
        assert answer == headers


def test_the_four_headers_in_the_specs_order() -> None:
    answer = printed(run("GET", "/prices", *CREDENTIALS, *AT, "--secret", "env:SECRET"))
    assert list(answer.items()) == [
        ("X-AUTH-DOMAIN", "venue"),
        ("X-AUTH-ACCESS-KEY", "k1"),
        ("X-AUTH-TIMESTAMP", "1700000000000"),
        ("X-AUTH-SIGNATURE", digest(b"1700000000000GET/prices")),
    ]


def test_a_body_on_standard_input_is_signed_byte_for_byte() -> None:
    body = b'{ "a": "\xff\x00" }\r\n'
    answer = printed(
        run("post", "/firm", *CREDENTIALS, *AT, "--secret", "env:SECRET", "--body", "-", body=body)
    )
    assert answer["X-AUTH-SIGNATURE"] == digest(b"1700000000000POST/firm" + body)


def test_explain_prints_the_payload_on_standard_error() -> None:
    url = "https://maker.example/1/firm?x=1"
    options = (*CREDENTIALS, *AT, "--secret", "env:SECRET", "--body", "-", "--explain")
    result = run("post", url, *options, body=b"{}")
    assert len(result.stdout.splitlines()) == 4
    assert result.stderr == (
        "signed payload, 30 bytes = timestamp 1700000000000 + method POST + target /1/firm?x=1"
        " + body of 2 bytes:\n1700000000000POST/1/firm?x=1{}\n"
    )


def test_without_a_timestamp_it_is_now() -> None:
    answer = printed(run("GET", "/prices", *CREDENTIALS, "--secret", "env:SECRET"))
    sent_ms = int(answer["X-AUTH-TIMESTAMP"])
    verifier = RequestVerifier({"venue": [("k1", SECRET.encode())]})
    domain, access_key, timestamp, signature = (value.encode() for value in answer.values())
    raw = (domain, access_key, timestamp, signature, b"GET", b"/prices", b"")
    assert verifier.verify(*raw, sent_ms) == b"venue"
    assert sent_ms > 1_700_000_000_000


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("utf8", SECRET),
        ("hex", SECRET.encode().hex()),
        ("base64", base64.b64encode(SECRET.encode()).decode()),
    ],
)
def test_a_secret_in_each_encoding_from_each_source(encoding: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text(text + "\n")
    for source in ("env:CODED", f"file:{tmp_path}/secret", text):
        answer = printed(
            run("GET", "/", *CREDENTIALS, *AT, "--secret", source, "--secret-encoding", encoding, CODED=text)
        )
        assert answer["X-AUTH-SIGNATURE"] == digest(b"1700000000000GET/")


TARGETS = [
    ("http://maker.example/1/prices", "/1/prices"),
    ("https://maker.example:8443/1/prices?a=1&a=%20#part", "/1/prices?a=1&a=%20"),
    ("HTTPS://maker.example/", "/"),
    ("https://maker.example", "/"),
    ("https://maker.example?a=/b", "/?a=/b"),
    ("https://maker.example#part", "/"),
    ("https://user:word@maker.example/x", "/x"),
    ("https://[::1]:80/x", "/x"),
    ("https://maker.example/a//b/../c", "/a//b/../c"),
    ("https://maker.example/x?to=https://other.example/y", "/x?to=https://other.example/y"),
    ("/prices", "/prices"),
    ("/prices?", "/prices?"),
    ("/prices#part", "/prices"),
    ("/callback?to=https://other.example/y", "/callback?to=https://other.example/y"),
    ("//maker.example/x", "//maker.example/x"),
    ("ws://maker.example/ws", "/ws"),
    ("wss://maker.example/ws?token=1#part", "/ws"),
    ("WSS://maker.example?x", "/"),
]


@pytest.mark.parametrize(("url", "target"), TARGETS)
def test_the_target_is_what_a_client_sends(url: str, target: str) -> None:
    assert request_target(url) == target


@pytest.mark.parametrize(
    "url",
    [
        "", "prices", "maker.example/prices", "ftp://maker.example/x", "://x", "https:/x", "http://", "https:///x",
        "http://?x", "/a b", "/é", "/a\nb", "https://maker.example/\0", "/\x7f", "mailto:x@y", "?x", "#x",
    ],
)  # fmt: skip
def test_what_is_no_url_is_refused(url: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        request_target(url)
    assert caught.value.field == "URL"
    assert caught.value.detail.isprintable()


REFUSED: dict[str, tuple[tuple[str, ...], str]] = {
    "URL": (("GET", "prices", "--secret", "env:SECRET"), "Invalid input: URL: "),
    "no such variable": (("GET", "/", "--secret", "env:NOPE"), "--secret: environment variable NOPE"),
    "no such file": (("GET", "/", "--secret", "file:/no/file.key"), "--secret: cannot read /no/file.key"),
    "empty secret": (("GET", "/", "--secret", ""), "--secret: is empty"),
    "wrong encoding": (
        ("GET", "/", "--secret", "env:SECRET", "--secret-encoding", "hex"),
        "secret: is not hex text",
    ),
}


@pytest.mark.parametrize(("arguments", "said"), REFUSED.values(), ids=REFUSED)
def test_a_wrong_value_ends_with_one_line_and_status_1(arguments: tuple[str, ...], said: str) -> None:
    result = run(*arguments, *CREDENTIALS)
    assert result.exit_code == 1
    assert result.stdout == ""
    (line,) = result.stderr.splitlines()
    assert line.startswith(f"Error: {said}")


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        ("GET",),
        ("GET", "/"),
        ("GET", "/", *CREDENTIALS),
        ("GET", "/", "--domain", "d", "--secret", "env:SECRET"),
        ("GET", "/", "--access-key", "k", "--secret", "env:SECRET"),
        ("GET", "/", *CREDENTIALS, "--secret", "env:SECRET", "--timestamp", "-1"),
        ("GET", "/", *CREDENTIALS, "--secret", "env:SECRET", "--timestamp", "soon"),
        ("GET", "/", *CREDENTIALS, "--secret", "env:SECRET", "--secret-encoding", "rot13"),
        ("GET", "/", *CREDENTIALS, "--secret", "env:SECRET", "--body", "/no/such/file"),
        ("GET", "/", "more", *CREDENTIALS, "--secret", "env:SECRET"),
    ],
    ids=" ".join,
)
def test_wrong_usage_ends_with_status_2(arguments: tuple[str, ...]) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert result.stdout == ""


@pytest.mark.parametrize("source", ["env:SECRET", SECRET])
def test_the_secret_is_never_printed(source: str) -> None:
    options = (*CREDENTIALS, *AT, "--secret", source)
    assert SECRET not in run("GET", "/", *options, "--explain").output
    assert SECRET not in run("GET", "/", *options, "--secret-encoding", "base64").output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ("G E T", "/x", "--domain", "d", "--access-key", "k"),
            "METHOD: expected the name of an HTTP method",
        ),
        (("G\udcff", "/x", "--domain", "d", "--access-key", "k"), "METHOD"),
        (("GET", "/x", "--domain", "d\r\nX-Evil: 1", "--access-key", "k"), "X-AUTH-DOMAIN: expected visible"),
        (("GET", "/x", "--domain", "d", "--access-key", ""), "X-AUTH-ACCESS-KEY: expected visible ASCII"),
    ],
)
def test_nothing_breaks_out_of_a_header_line(arguments: tuple[str, ...], said: str) -> None:
    result = run(*arguments, "--secret", "s")
    assert result.exit_code == 1
    assert said in result.stderr
    assert result.stdout == ""
