"""Generator of lifecycles.md, the page of the states of orders and of the relayer's transactions.

The states and steps come from the tables in `engine/trade/orders/lifecycles.py` and
`engine/chain/relay/relay_lifecycles.py`. `make catalogue` runs this module.
"""

from pathlib import Path

from cambist.engine.chain.relay.relay_lifecycles import RELAY_INTENT_LIFECYCLE, RELAY_TRANSACTION_LIFECYCLE
from cambist.engine.trade.orders.lifecycles import DELTA_LIFECYCLE, OTC_LIFECYCLE

PAGE = "docs/reference/lifecycles.md"


def page() -> str:
    """Generate the Markdown of lifecycles.md: state diagrams of orders and relayed transactions."""
    return f"""# Life cycles

States of orders, relay intents and relay transactions, and the reasons of the steps between them. Every
step takes its state from these tables (`engine/trade/orders/lifecycles.py`,
`engine/chain/relay/relay_lifecycles.py`), from which `make catalogue` generates this page. *Undone or late*
steps are those that a re-organisation of the chain takes back, or that the chain reports late; they are
possible until the state is deep enough in the chain to be final.

## Delta orders

```mermaid
{DELTA_LIFECYCLE.diagram()}```

## OTC orders

```mermaid
{OTC_LIFECYCLE.diagram()}```

## Relay intents

```mermaid
{RELAY_INTENT_LIFECYCLE.diagram()}```

## Relay transactions

```mermaid
{RELAY_TRANSACTION_LIFECYCLE.diagram()}```
"""


def _write() -> None:
    (Path(__file__).resolve().parents[2] / PAGE).write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    _write()
