"""A script with ethers crosses between the chains of `cambist devnet --bridge`, of either kind."""

import os
from pathlib import Path

import pytest

from support.chain.devnet import devnet_process
from support.oracles import Stories
from support.programs import program

pytestmark = pytest.mark.oracle


@pytest.mark.parametrize(
    "kind",
    [
        pytest.param("embedded", marks=pytest.mark.needs("pyrevm")),
        pytest.param("anvil", marks=pytest.mark.anvil),
    ],
)
def test_a_script_crosses_by_both_bridges(tmp_path: Path, stories: Stories, kind: str) -> None:
    options, environ = ["--bridge"], {}
    if kind == "anvil":
        options.append("--anvil")
        environ["PATH"] = f"{program('anvil').parent}{os.pathsep}{os.environ['PATH']}"
    with devnet_process(tmp_path, *options, environ=environ) as devnet:
        assert [chain["engine"] for chain in devnet.told["chains"]] == [kind, kind]
        urls = [devnet.url(0), devnet.url(1), devnet.told["bridge"]]
        told = stories.told("ethers_bridge", *urls, devnet.told["contractsFile"])
        relayer, attester = told.pop("orders")
        assert relayer["fill_after_s"] == attester["fast_after_s"] == attester["final_after_s"] == 0
        assert told.pop("limits")["maxDeposit"] == str(10**12)
        assert told == {
            "output": "99940000",
            "filled": "99940000",
            "onSecond": "99940000",
            "refund": [True, "50000000"],
            "repaid": True,
            "isWhole": True,
            "fills": 0,
            "decoded": "2000",
            "nonce": True,
            "onFirst": "19998000",
        }
        assert devnet.end() == 0
