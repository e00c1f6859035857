"""URLs of settings: whether a connection can be made to them."""

from urllib.parse import urlsplit

HTTP = ("http://", "https://")
WEBSOCKET = ("ws://", "wss://")
NAMES_PLACE = "names a host, and a port of 1 to 65535 if any"


def has_place(url: str) -> bool:
    """Whether a URL names a host and, if it names a port, one that there is."""
    try:
        parts = urlsplit(url)
        return bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def check_url(name: str, url: str, schemes: tuple[str, str]) -> None:
    """Pass for a URL that a connection can be made to. What it holds is not repeated: it may be a key.

    Args:
        name: of the setting.

    Raises:
        ValueError: it is none.
    """
    if not url.startswith(schemes):
        raise ValueError(f"{name} is {schemes[0]}... or {schemes[1]}...")
    if not has_place(url):
        raise ValueError(f"{name} {NAMES_PLACE}")
    if "@" in urlsplit(url).netloc or "#" in url:
        raise ValueError(f"{name} has neither user nor fragment")
    if not (url.isascii() and url.isprintable()) or " " in url:
        raise ValueError(f"{name} has everything percent-encoded that is not visible ASCII")
