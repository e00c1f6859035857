"""Fields of the package's metadata that need the project's public address.

The environment variable PROJECT_URL holds the address of the repository, e.g. https://host/owner/cambist.
With it, links and pictures of README.md are absolute, so that they work on a package index, and
the package names its addresses. Without it both stay as they are.
"""

import os
import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_RELATIVE_PICTURE = re.compile(r"(!\[[^\]]*)\]\((?!\w+:)([^)]+)\)")
_RELATIVE_LINK = re.compile(r"\]\((?!\w+:|#)([^)]+)\)")


class AddressedMetadata(MetadataHookInterface):
    """Metadata hook of hatchling: the fields `readme` and `urls`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add README.md, and the project's addresses if PROJECT_URL has a value."""
        text = Path(self.root, "README.md").read_text(encoding="utf-8")
        address = os.environ.get("PROJECT_URL", "").rstrip("/")
        if address:
            files = f"{address}/blob/v{metadata['version']}"
            text = _RELATIVE_PICTURE.sub(rf"\1]({address}/raw/v{metadata['version']}/\2)", text)
            text = _RELATIVE_LINK.sub(rf"]({files}/\1)", text)
            metadata["urls"] = {
                "Homepage": address,
                "Documentation": f"{files}/docs",
                "Changelog": f"{files}/CHANGELOG.md",
                "Issues": f"{address}/issues",
            }
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
