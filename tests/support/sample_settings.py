"""Check that the sample of docs/reference/settings.md shows the defaults, with the product's own bounds.

    python -m support.sample_settings SAMPLE FOLDER

SAMPLE is the file with its TOML; FOLDER has the key files that it names.
"""

import sys
from pathlib import Path

from cambist.config.sections.agent import AgentSettings
from cambist.config.sections.relayer import RelayerSettings
from cambist.config.sections.server import ServerSettings
from cambist.config.sections.store import StoreSettings
from cambist.config.sections.venue import VenueMakerChain, VenueSettings
from cambist.config.settings import parse_settings

_SECRETS = ["ROUTE_SEAL", "MAKER_PASSWORD", "VENUE_SECRET", "VENUE_SECRET_NEXT", "AGENT_SECRET"]


def _same(shown: object, default: object) -> None:
    if shown != default:
        raise SystemExit(f"the sample shows {shown}\nthe default is {default}")


def _main(sample: Path, folder: Path) -> None:
    secrets: dict[str, str] = dict.fromkeys(_SECRETS, "a secret")
    settings = parse_settings(sample.read_text(encoding="utf-8"), secrets, folder)
    _same(settings.chains[1].rfq_domain_name, "AUGUSTUS RFQ")
    _same(len(settings.auth.domains["venue"].keys), 2)
    _same(settings.server, ServerSettings())
    _same(settings.store, StoreSettings())
    _same(settings.relayers, {1: RelayerSettings(key="maker")})
    assert settings.venue
    makers = settings.venue.makers
    _same(settings.venue, VenueSettings(makers=makers, agents=settings.venue.agents))
    alpha = makers["alpha"].chains[1]
    _same(alpha, VenueMakerChain(url=alpha.url, ws_url=alpha.ws_url))
    assert settings.agent
    _same(settings.agent, AgentSettings(makers=settings.agent.makers))


if __name__ == "__main__":
    _main(Path(sys.argv[1]), Path(sys.argv[2]))
