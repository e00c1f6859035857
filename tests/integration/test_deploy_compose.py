"""compose.yaml, read as YAML: accounts, secrets, addresses, checks of health, commands and mounted files."""

import json
import re
import subprocess
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Any

import pytest
from bench.peers.process import PEERS_PYTHON

from support.chain.devnet import cambist
from support.patience import PATIENCE_S
from support.programs import program

pytestmark = pytest.mark.seldom

DEPLOY = Path(__file__).parents[2] / "deploy"
INSIDE = "/etc/cambist/"
ROLES = {"engine-1": "venue", "engine-2": "venue", "alpha": "alpha", "beta": "beta", "agent": "agent"}
"""Service that stays -> name of its settings file."""
_READ = "import json, sys, yaml; json.dump(yaml.safe_load(sys.stdin), sys.stdout)"


@pytest.fixture(scope="module")
def compose() -> dict[str, Any]:
    program("peers")
    text = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")
    done = subprocess.run(
        [PEERS_PYTHON, "-c", _READ],
        input=text,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    told: dict[str, Any] = json.loads(done.stdout)
    return told


def ours(compose: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The services that run cambist."""
    return {name: each for name, each in compose["services"].items() if each["image"] == "cambist"}


def settings_of(service: dict[str, Any]) -> str:
    """Text of the settings file that a service names, which must be among its volumes."""
    path = service["command"][service["command"].index("--config") + 1]
    name = path.removeprefix(INSIDE)
    assert f"./settings/{name}:{path}:ro" in service["volumes"]
    text: str = (DEPLOY / "settings" / name).read_text(encoding="utf-8")
    return text


def test_no_container_of_ours_has_root_a_file_system_to_write_or_endless_logs(
    compose: dict[str, Any],
) -> None:
    for name, each in ours(compose).items():
        assert each["user"] == "${CAMBIST_UID:-10001}", name
        assert (each["read_only"], each["cap_drop"]) == (True, ["ALL"]), name
        assert each["security_opt"] == ["no-new-privileges:true"], name
        assert each["logging"]["options"].keys() == {"max-size", "max-file"}, name
    assert re.search(r"^USER cambist$", (DEPLOY / "Containerfile").read_text(encoding="utf-8"), re.MULTILINE)


def test_each_service_sees_the_secrets_of_its_settings_and_no_other(compose: dict[str, Any]) -> None:
    for name, each in ours(compose).items():
        if name == "chain":
            assert "secrets" not in each
            continue
        named = set(re.findall(r'"file:secrets/(\w+)"', settings_of(each)))
        assert {secret["source"] for secret in each["secrets"]} == named, name
        for secret in each["secrets"]:
            assert secret["target"] == f"{INSIDE}secrets/{secret['source']}"
    assert compose["secrets"] == {name: {"file": f"./secrets/{name}"} for name in compose["secrets"]}


def test_each_role_keeps_its_state_in_a_folder_of_its_own(compose: dict[str, Any]) -> None:
    """A stopped maker stays stopped, and an excluded maker excluded, when a container is made anew."""
    made = re.findall(r"for name in (.+); do mkdir", (DEPLOY / "make-secrets").read_text(encoding="utf-8"))
    for name in ROLES:
        assert f"./state/{name}:/var/lib/cambist" in compose["services"][name]["volumes"]
        assert name in made[0].split()


def test_each_role_writes_where_its_container_can_write(compose: dict[str, Any]) -> None:
    """The root of each container is read-only."""
    for name, each in ours(compose).items():
        states = {each.get("environment", {}).get("CAMBIST__STATE_DIR")}
        if "--config" in each["command"]:
            states = set(re.findall(r'^state_dir = "(.+)"$', settings_of(each), re.MULTILINE)) or states
        mounts = [volume.split(":")[1] for volume in each.get("volumes", ())]
        mounts += [path.partition(":")[0] for path in each["tmpfs"]]
        assert states <= set(mounts), name


def test_the_play_chain_and_its_acts_are_in_a_profile_that_no_other_service_needs(
    compose: dict[str, Any],
) -> None:
    services = compose["services"]
    play = {name for name, each in services.items() if each.get("profiles") == ["play"]}
    assert play == {"chain", "alpha-approves", "beta-approves"}
    for name, each in services.items():
        for needed, how in each.get("depends_on", {}).items():
            assert name in play or how.get("required", True) == (needed not in play), (name, needed)


def test_checks_of_health_ask_the_inner_listener(compose: dict[str, Any]) -> None:
    for name, file in ROLES.items():
        service = compose["services"][name]
        text = settings_of(service)
        assert text == (DEPLOY / "settings" / f"{file}.toml").read_text(encoding="utf-8")
        inner = re.search(r"^\[(?:server\.health|maker\.admin)\].*\n.*\nport = (\d+)$", text, re.MULTILINE)
        assert inner is not None
        assert f"http://127.0.0.1:{inner[1]}/readyz" in service["healthcheck"]["test"][-1]
    once = {"alpha-approves", "beta-approves"}
    assert [name for name, each in compose["services"].items() if "healthcheck" not in each] == sorted(once)


def test_the_proxy_has_the_address_that_engines_trust_and_no_container_can_get_it(
    compose: dict[str, Any],
) -> None:
    address = compose["services"]["proxy"]["networks"]["inside"]["ipv4_address"]
    (pool,) = compose["networks"]["inside"]["ipam"]["config"]
    assert ip_address(address) in ip_network(pool["subnet"])
    assert ip_address(address) not in ip_network(pool["ip_range"])
    venue = (DEPLOY / "settings" / "venue.toml").read_text(encoding="utf-8")
    assert f'trusted_proxies = ["{address}"]' in venue


def test_services_wait_for_services_that_exist_and_can_be_waited_for(compose: dict[str, Any]) -> None:
    services = compose["services"]
    for each in services.values():
        for name, how in each.get("depends_on", {}).items():
            if how["condition"] == "service_healthy":
                assert "healthcheck" in services[name]
            else:
                assert services[name]["restart"] == "no"


@pytest.mark.process
def test_each_command_is_a_command_and_each_mounted_file_is_there(compose: dict[str, Any]) -> None:
    commands = {tuple(each["command"]) for each in ours(compose).values()}
    assert len(commands) == 7
    for words in sorted(commands):
        options = [word for word in words if word.startswith("--")]
        asked = cambist(*words[: words.index(options[0])], "--help", folder=DEPLOY)
        said = subprocess.run(asked, capture_output=True, text=True, timeout=PATIENCE_S, check=True).stdout
        assert all(option in said for option in options), said
    mounts = {
        volume.partition(":")[0]
        for each in compose["services"].values()
        for volume in each.get("volumes", ())
    }
    files = {path for path in mounts if path.startswith("./") and not path.startswith("./state/")}
    assert {"./settings/venue.toml", "./proxy/Caddyfile", "./prometheus"} <= files
    assert [path for path in sorted(files) if not (DEPLOY / path).exists()] == []
    assert mounts - files == {f"./state/{name}" for name in (*ROLES, "proxy")} | compose["volumes"].keys()
