"""Generator of choices.md, the page of decisions where the specification is silent or contradictory.

The source of each decision is a `Choice:` paragraph in a docstring, which ends at a blank line, at the next
`Word:` or with the docstring. `make catalogue` collects the paragraphs by topic; a test fails while the
committed page differs from the generated page.
"""

import ast
import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

PAGE = "docs/reference/choices.md"
FOLDERS = ("config", "crypto", "codecs", "feeds", "engine")
WIDTH = 116
_UNBROKEN = "\0"
_ROOT = Path(__file__).resolve().parents[2]
_CHOICE = re.compile(r"^ *Choice: (.+(?:\n(?! *[A-Z][a-z]+:(?:\s|$)).*\S.*)*)", re.MULTILINE)

TOPICS: dict[str, tuple[str, ...]] = {
    "Requests and errors": ("config.catalogue", "config.errors", "codecs"),
    "Chains and tokens": (
        "crypto",
        "codecs.trading_token",
        "engine.trade.routing.served",
        "engine.trade.routing.tokens",
        "engine.trade.served.resources",
    ),
    "Quotes and routes": (
        "codecs.messages.market_messages",
        "crypto.route_seal",
        "engine.trade.routing",
        "engine.trade.served.bridge_lanes",
        "engine.trade.served.delivery_gas",
        "engine.trade.served.bridge_endpoints",
        "engine.trade.quote",
        "feeds.bridges",
        "feeds.books",
    ),
    "Firm quotes": (
        "engine.trade.routing.firm",
        "feeds.firm",
    ),
    "Market swaps": ("engine.trade.market",),
    "Fees and partners": ("config.sections.partners", "engine.chain.proceeds"),
    "Delta orders": (
        "codecs.messages.delta_messages",
        "codecs.eip712_orders",
        "engine.trade.orders.lifecycles",
        "engine.trade.orders.live_rows",
        "engine.trade.orders.order_units",
        "engine.trade.delta.endpoints.order_reads",
        "engine.trade.delta.endpoints.order_submit",
        "engine.trade.delta.endpoints.build_orders",
        "engine.trade.delta",
    ),
    "Auctions and settlements": (
        "codecs.messages.agent_messages",
        "codecs.messages.auction_messages",
        "engine.roles.agent",
        "engine.trade.delta.bids",
        "engine.trade.delta.auction",
        "engine.trade.delta.settlement",
        "engine.trade.delta.resting",
    ),
    "OTC orders": ("codecs.messages.otc_messages", "engine.trade.otc.endpoints", "engine.trade.otc"),
    "Signatures and permits": (
        "crypto.eip712",
        "crypto.typed_data",
        "codecs.eip712_orders.signing_names",
        "engine.host.admission.signatures",
        "engine.trade.served.permit_proof",
        "engine.trade.served.signed_by",
        "engine.trade.served.token_permits",
    ),
    "Streams and webhooks": (
        "codecs.messages.event_messages",
        "config.sections.webhooks",
        "engine.trade.events",
    ),
    "Trades and statistics": ("engine.trade.tape",),
    "Makers at the venue": (
        "codecs.messages.maker_messages",
        "crypto.hmac_auth",
        "engine.trade.makers.maker_books",
        "engine.trade.makers.maker_scores",
        "feeds",
    ),
    "Market maker": ("engine.roles.maker",),
    "Check of a maker": ("engine.trader.conformance",),
    "Traders' commands": ("engine.trader.client",),
    "Chain and contracts": ("codecs.contracts.delta_calldata", "codecs.transactions", "engine.chain"),
    "Connections and limits": (
        "codecs.http1",
        "engine.host.admission",
        "engine.host.server",
        "feeds.transport",
    ),
    "Development nodes": ("engine.dev",),
    "Operations": (
        "engine.host.process",
        "engine.host.safety",
        "engine.roles.venue.health",
        "engine.trade.makers.operation",
    ),
}
"""Heading of docs/reference/choices.md -> dotted names of modules and folders, in the order of the page.

The choices of a module go under the heading that lists the module itself, or else its nearest folder.
"""

_HEAD = """# Choices

Decisions of cambist where the [specification](spec/1-swap-and-delta.md) is silent, loose or at odds with
itself. Each stands in the docstring of the module named behind it; `make catalogue` collects them here.
"""


def choices_of(source: str) -> Iterator[str]:
    """Yield the text of each `Choice:` paragraph in a module's docstrings, each as a single line.

    Paragraphs of the module's docstring come first, then those of its classes and functions, then those of
    methods.

    Args:
        source: Python source of the module.
    """
    for node in ast.walk(ast.parse(source)):
        if (
            isinstance(node, ast.Expr)
            and isinstance(node.value, ast.Constant)
            and isinstance(node.value.value, str)
        ):
            for paragraph in _CHOICE.finditer(node.value.value):
                yield " ".join(paragraph[1].split())


def topic_of(module: str) -> str:
    """Return the heading of docs/reference/choices.md under which the choices of a module go.

    Args:
        module: dotted name below the package, e.g. `engine.trade.quote.ask`.

    Raises:
        LookupError: TOPICS lists neither the module nor a folder that contains it.
    """
    fitting = {
        name: topic
        for topic, names in TOPICS.items()
        for name in names
        if f"{module}.".startswith(f"{name}.")
    }
    if not fitting:
        raise LookupError(f"TOPICS of {__name__} has no topic for {module}")
    return fitting[max(fitting, key=len)]


def collected() -> dict[str, list[str]]:
    """Collect the `Choice:` paragraphs of the package's sources: dotted module name -> paragraphs.

    Modules without choices are absent.
    """
    found: dict[str, list[str]] = {}
    for folder in FOLDERS:
        for path in sorted((_ROOT / folder).rglob("*.py")):
            module = ".".join(path.relative_to(_ROOT).with_suffix("").parts).removesuffix(".__init__")
            source = path.read_text(encoding="utf-8")
            if "Choice:" in source and (choices := list(choices_of(source))):
                found[module] = choices
    return found


def page() -> str:
    """Generate the Markdown of docs/reference/choices.md: the choices of all modules, by topic."""
    entries: dict[str, list[str]] = {topic: [] for topic in TOPICS}
    for module, choices in collected().items():
        entries[topic_of(module)] += [f"{choice} `{module}`" for choice in choices]
    links = f"{_UNBROKEN}· ".join(f"[{topic}](#{anchor(topic)})".replace(" ", _UNBROKEN) for topic in TOPICS)
    parts = [_HEAD, _filled(links).replace(_UNBROKEN, " ")]
    for topic, texts in entries.items():
        parts += ["", f"## {topic}", "", *(_filled(text, "- ") for text in texts)]
    return "\n".join(parts) + "\n"


def anchor(topic: str) -> str:
    """Return the anchor that Markdown gives a heading, e.g. `otc-orders` for `OTC orders`."""
    return re.sub(r"[^a-z-]", "", topic.lower().replace(" ", "-"))


def _filled(text: str, mark: str = "") -> str:
    return textwrap.fill(
        text,
        WIDTH,
        initial_indent=mark,
        subsequent_indent=" " * len(mark),
        break_long_words=False,
        break_on_hyphens=False,
    )


def _write() -> None:
    (_ROOT / PAGE).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    _write()
