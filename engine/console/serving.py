"""Files of a console: its page at `/`, its scripts and styles under `/console/`."""

from collections.abc import Iterable
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit

from ..host.server.assets import Asset, page_policy, read_assets

_AT = "/console"
_FOLDER = Path(__file__).parent


def console_pages(role: Literal["venue", "maker"], nodes: Iterable[str] = ()) -> dict[str, Asset]:
    """Read the files of a role's console.

    Args:
        nodes: URLs of chains' nodes that the page may call beside its own host; empty ones are left out.

    Returns:
        URL path -> file, for `asset_group`.
    """
    policy = page_policy(" ".join(sorted({_origin(url) for url in nodes if url})))
    assets = read_assets(_FOLDER / role, _AT, policy)
    assets |= read_assets(_FOLDER / "shared", f"{_AT}/shared", policy)
    assets["/"] = assets.pop(_AT)
    return assets


def _origin(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"
