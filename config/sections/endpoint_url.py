"""Check that URLs of settings name a host and port to connect to."""

from urllib.parse import urlsplit

HTTP = ("http://", "https://")
WEBSOCKET = ("ws://", "wss://")
NAMES_PLACE = "names a host, and a port of 1 to 65535 if any"


def has_place(url: str) -> bool:
    """Whether a URL names a host and, if it names a port, a port in range."""
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def check_url(name: str, url: str, schemes: tuple[str, str]) -> None:
    """Check the form of a URL for connections: scheme, host and port. Errors do not repeat the URL.

    Args:
        name: name of the setting.
        url: the URL, which may hold an access key.
        schemes: accepted beginnings, e.g. `http://` and `https://`.

    Raises:
        ValueError: the URL is unusable.
    """
    if not url.startswith(schemes):
        raise ValueError(f"{name} is {schemes[0]}... or {schemes[1]}...")
    if not has_place(url):
        raise ValueError(f"{name} {NAMES_PLACE}")
    if "@" in urlsplit(url).netloc or "#" in url:
        raise ValueError(f"{name} has neither user nor fragment")
    if not (url.isascii() and url.isprintable()) or " " in url:
        raise ValueError(f"{name} needs percent-encoding of all but visible ASCII")
