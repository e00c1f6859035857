"""GET /makers/scores: outcomes of the makers' firm quotes, and cool-downs (rests) of makers and pairs.

    every client                             counts, cool-downs, size bounds
    a maker, by its own credentials          also its last faults, with expected and signed amounts, and why
                                             pairs are refused
    an operator's key, or on this machine    the same of all makers

A maker's counts are public; its signed quotes and their users are not. Scores without `network` and `chainId`
cover all served chains.

Choice: A maker signs its request for scores as in spec 3.10, with the secret shared with the venue; a wrong
    signature is 401.
"""

from collections.abc import Callable, Mapping, Sequence

from ....codecs.messages.resource_messages import (
    AdaptersQuery,
    MakerBound,
    MakerScore,
    MakerScores,
    PairScore,
    decode_adapters_query,
)
from ....codecs.messages.wire import encode
from ....config.sections.venue import VenueMaker
from ....crypto.addresses import to_checksum
from ....feeds.durations import quantile_s
from ....feeds.firm.maker_health import HealthReport
from ...host.admission.admission import is_local
from ...host.server.routing import HttpCall, Reply
from ..api.chain_parameter import network_of
from ..api.routes import Endpoint
from ..routing.firm.fault_notices import fault_of
from ..served.served_chain import ServedChains, served_chain_at
from .signed_callers import SignedCallers


class MakerSecrets:
    """Decides which makers' faults and books a caller may see.

    Args:
        makers: configured makers by name.
        is_operator: returns whether a request has an operator's API key.
    """

    def __init__(self, makers: Mapping[str, VenueMaker], is_operator: Callable[[HttpCall], bool]) -> None:
        self._names = frozenset(makers)
        self._signed = SignedCallers({name: maker.credentials for name, maker in makers.items()})
        self._is_operator = is_operator

    def shown(self, call: HttpCall) -> frozenset[str]:
        """Return the names of the makers whose faults and books the caller may see.

        An operator, and a client on this machine, may see those of all makers. A maker that signs its request
        may see its own; any other client may see none.

        Raises:
            AuthError: the request carries a wrong signature.
        """
        if is_local(call) or self._is_operator(call):
            return self._names
        name = self._signed.name(call)
        return frozenset() if name is None else frozenset({name})


class MakerScoreBoard:
    """HTTP endpoint GET /makers/scores: outcomes of makers' firm quotes, faults and cool-downs.

    Args:
        chains: served chains by chain id.
    """

    def __init__(self, chains: ServedChains, makers: MakerSecrets) -> None:
        self._chains = chains
        self._secrets = makers

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the HTTP endpoint GET /makers/scores, as a row of the route table."""
        return (
            Endpoint(
                method="GET",
                path="/makers/scores",
                plain=self._scores,
                group="Resources",
                summary="Outcomes of the makers' last firm quotes, their faults, and the ends of their rests",
                query=AdaptersQuery,
                answer=MakerScores,
            ),
        )

    def _scores(self, call: HttpCall) -> Reply:
        network = network_of(decode_adapters_query(call.request.query or b""))
        chains = (
            self._chains.values() if network is None else (served_chain_at(self._chains, network, "network"),)
        )
        shown = self._secrets.shown(call)
        scores = [
            maker_score(
                served.chain_id,
                name,
                maker.health.report(call.now_ms),
                maker.cache.refused_pairs(),
                maker.durations.counts,
                has_faults=name in shown,
            )
            for served in chains
            for name, maker in sorted(served.desk.makers.items())
        ]
        return Reply(200, encode(scores))


def _quantile_ms(counts: Sequence[int], share: float) -> float | None:
    found_s = quantile_s(counts, share)
    return None if found_s is None else round(found_s * 1_000, 1)


def maker_score(
    network: int,
    maker: str,
    report: HealthReport,
    refused: dict[str, str],
    durations: Sequence[int],
    *,
    has_faults: bool,
) -> MakerScore:
    """Convert a maker's health report into the score that GET /makers/scores returns.

    Args:
        network: chain id.
        refused: pair id -> reason why the pair is refused.
        durations: histogram of the maker's times to answer, by `feeds.durations.BOUNDS_S`.
        has_faults: whether the score includes the maker's last faults and its refused pairs.
    """
    own = report.maker
    return MakerScore(
        network=network,
        maker=maker,
        score=own.score,
        quotes=own.quotes,
        reasons=own.reasons,
        p50_ms=_quantile_ms(durations, 0.5),
        p99_ms=_quantile_ms(durations, 0.99),
        block_until=own.block_until_ms or None,
        block_reason=own.block_reason,
        pairs=tuple(
            PairScore(
                (to_checksum(pair.one), to_checksum(pair.other)),
                pair.health.score,
                pair.health.quotes,
                pair.health.reasons,
                pair.health.block_until_ms or None,
            )
            for pair in report.pairs
        ),
        bounds=tuple(
            MakerBound(to_checksum(src), to_checksum(dest), str(bound.amount), bound.until_ms)
            for (src, dest), bound in report.bounds.items()
        ),
        last_faults=tuple(map(fault_of, report.last_faults)) if has_faults else None,
        refused=refused if has_faults else None,
    )
