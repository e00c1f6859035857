"""The whole surface against requests that others make up from its document: no 5xx, answers as described."""

import subprocess
from pathlib import Path

import trio
from bench.peers.process import PEERS_PYTHON

from support.oracles import require_oracle
from support.venue_role import running_venue

CHECKS = (
    "not_a_server_error", "status_code_conformance", "content_type_conformance",
    "response_schema_conformance", "unsupported_method", "allow_header_conformance",
)  # fmt: skip


async def test_requests_that_schemathesis_makes_up(tmp_path: Path) -> None:
    program = PEERS_PYTHON.with_name("schemathesis")
    require_oracle(program)
    # Methods that HTTP here does not know at all, as TRACE, are 501 (RFC 9110 15.6.2).
    methods = '[phases.coverage]\nunexpected-methods = ["DELETE", "PATCH", "PUT", "POST", "GET"]\n'
    (tmp_path / "schemathesis.toml").write_text(methods)
    async with running_venue(tmp_path) as venue:
        with trio.fail_after(300):
            done = await trio.run_process(
                [
                    program, "run", f"{venue.url}/openapi.json",
                    "--checks", ",".join(CHECKS),
                    "--phases", "examples,coverage,fuzzing",
                    "--max-examples", "10",
                    "--seed", "1",
                    "--generation-database", "none",
                    "--exclude-path", "/v2/quote/stream",  # has no end
                    "--suppress-health-check", "all",
                    "--no-color",
                ],
                cwd=tmp_path,
                check=False,
                capture_stdout=True,
                stderr=subprocess.STDOUT,
            )  # fmt: skip
        assert done.returncode == 0, done.stdout.decode()
        assert venue.app.server.statistics().errors == 0
