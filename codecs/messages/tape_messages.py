"""Messages about a venue's latest trades and their statistics.

Source: ARCHITECTURE.md, "Trades".
"""

from typing import Annotated

from msgspec import Meta, Struct, field

from ...config.limits import TAPE_LISTED_DEFAULT, TAPE_LISTED_MAX
from .query import query_decoder
from .vocabulary import AnyCase, ChainId, Count, Name


class TradeKind(AnyCase):
    """Kind of a trade on the tape.

    Attributes:
        DELTA: a settlement of a Delta order.
        MARKET: a swap by the Router, with makers' firm quotes or signed orders.
    """

    DELTA = "DELTA"
    MARKET = "MARKET"


class TradesQuery(Struct, frozen=True, rename="camel", kw_only=True):
    """Query of GET /v2/delta/trades.

    Attributes:
        limit: greatest number of trades.
        kind: only trades of this kind; None for both.
    """

    chain_id: ChainId
    limit: Annotated[int, Meta(ge=1, le=TAPE_LISTED_MAX)] = TAPE_LISTED_DEFAULT
    kind: TradeKind | None = None


class TradeStreamQuery(Struct, frozen=True, rename="camel", kw_only=True):
    """Query of GET /v2/delta/trades/stream.

    Attributes:
        kind: only trades of this kind; None for both.
        after: token of the trade after which the stream starts; if absent, the stream starts after the newest
            trade.
    """

    chain_id: ChainId
    kind: TradeKind | None = None
    after: Name | None = None


class TradeStatisticsQuery(Struct, frozen=True, rename="camel", kw_only=True):
    """Query of GET /stats."""

    chain_id: ChainId


class TradeMessage(Struct, frozen=True, rename="camel", kw_only=True):
    """A trade, without owner and order.

    Attributes:
        at: time of the trade's block, ISO 8601.
        src_amount, dest_amount: raw units that the user gave and received: of a Delta trade after fees, of a
            Market trade before fees. `dest_token` of an order across chains is the token that entered the
            bridge.
        src_usd, dest_usd: values in US dollars when this venue first saw the trade; None if unknown.
        agent: agent whose bid was settled; None for a Market trade.
        makers: names of the configured makers that filled a part, sorted.
        surplus_bps: improvement for the owner over the quoted amount, basis points with one digit of
            fraction, negative for a worse trade; None for a Market trade, and without a quoted amount.
        fill_ms: milliseconds from the order's submission to the trade's block; None for a Market trade, and
            for a part of an order that waited for its price or time.
    """

    kind: TradeKind
    chain_id: ChainId
    at: str
    block_number: Count
    transaction_hash: str
    src_token: str
    dest_token: str
    src_amount: str
    dest_amount: str
    src_usd: str | None = field(name="srcUSD")
    dest_usd: str | None = field(name="destUSD")
    agent: str | None
    makers: tuple[str, ...]
    surplus_bps: str | None
    fill_ms: Count | None


class MakerVolume(Struct, frozen=True, rename="camel", kw_only=True):
    """Fills of one maker within the venue's trades.

    Attributes:
        volume_usd: value of the fills in US dollars, two digits of fraction.
        share: the maker's part of the volume of all makers, percent with one digit of fraction.
    """

    maker: str
    fills: Count
    volume_usd: str = field(name="volumeUSD")
    share: str


class AgentVolume(Struct, frozen=True, rename="camel", kw_only=True):
    """Delta trades of one agent.

    Attributes:
        volume_usd: value of the trades in US dollars, two digits of fraction.
        share: the agent's part of the volume of all agents, percent with one digit of fraction.
        median_surplus_bps: median of the trades' `surplusBps`; None without one.
    """

    agent: str
    fills: Count
    volume_usd: str = field(name="volumeUSD")
    share: str
    median_surplus_bps: str | None


class HourVolume(Struct, frozen=True, rename="camel", kw_only=True):
    """Trades of one hour.

    Attributes:
        from_: begin of the hour, ISO 8601.
        volume_usd: value of the trades in US dollars, two digits of fraction.
    """

    from_: str = field(name="from")
    fills: Count
    volume_usd: str = field(name="volumeUSD")


class TradeStatistics(Struct, frozen=True, rename="camel", kw_only=True):
    """Answer of GET /stats: the trades of the last 24 hours.

    Attributes:
        from_, to: begin and end of the 24 hours, ISO 8601; `to` is the time of the computation.
        fills: number of trades.
        volume_usd: value of the trades with a known value, US dollars with two digits of fraction.
        median_surplus_bps, median_fill_ms: medians of the trades that have one; None without one.
        makers, agents: the largest volume first.
        hours: the 24 hours in order; the last one ends at `to`.
    """

    chain_id: ChainId
    from_: str = field(name="from")
    to: str
    fills: Count
    volume_usd: str = field(name="volumeUSD")
    median_surplus_bps: str | None
    median_fill_ms: Count | None
    makers: tuple[MakerVolume, ...]
    agents: tuple[AgentVolume, ...]
    hours: tuple[HourVolume, ...]


decode_trades_query = query_decoder(TradesQuery)
decode_trade_stream_query = query_decoder(TradeStreamQuery)
decode_trade_statistics_query = query_decoder(TradeStatisticsQuery)
