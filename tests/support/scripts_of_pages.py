"""Scripts of the docs as their readers run them, at ports that are free here."""

import re
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from bench.peers.ports import held_port, port_of


@contextmanager
def at_free_ports(script: str) -> Iterator[str]:
    """A script whose settings files name other ports, since its own may be somebody's here."""
    with ExitStack() as held:
        for port in sorted(set(re.findall(r"^port = (\d+)$", script, re.MULTILINE))):
            free = port_of(held.enter_context(held_port()))
            script = re.sub(rf"\b{port}\b", str(free), script)
        yield script
