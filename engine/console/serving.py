"""Routes of a console: its page at `/`, its scripts and styles under `/console/`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from ..server.assets import asset_group, page_policy, read_assets
from ..server.routing import ErrorEncoder, RouteGroup

_AT = "/console"
_FOLDER = Path(__file__).parent


def console_group(
    role: Literal["venue", "maker"], encode_error: ErrorEncoder, nodes: Iterable[str] = ()
) -> RouteGroup:
    """Create the routes of a role's console, for `Router.mount`.

    Args:
        encode_error: encodes errors of the paths, such as 405, into the body of the answer.
        nodes: URLs of chains' nodes that the page may call beside its own host.
    """
    policy = page_policy(" ".join(sorted({_origin(url) for url in nodes})))
    assets = read_assets(_FOLDER / role, _AT, policy)
    assets |= read_assets(_FOLDER / "shared", f"{_AT}/shared", policy)
    assets["/"] = assets.pop(_AT)
    return asset_group(assets, encode_error)


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
