"""Addresses of the public internet; no other address is dialled."""

import socket
import threading
from typing import Any

import pytest
import trio
import trio.testing

from cambist.feeds.transport import outward
from cambist.feeds.transport.outward import HostLookUps, dial_outward, is_outward
from cambist.feeds.transport.streams import dial
from support.patience import PATIENCE_S


@pytest.mark.parametrize(
    "address", ["93.184.215.14", "2606:2800:21f:cb07:6820:80da:af6b:8b2c", "64:ff9b::5db8:d70e"]
)
def test_public(address: str) -> None:
    assert is_outward(address)


@pytest.mark.parametrize(
    "address",
    [
        "127.0.0.1", "127.8.8.8", "0.0.0.0", "10.1.2.3", "172.16.0.1", "192.168.1.1", "100.64.0.1",
        "169.254.169.254", "224.0.0.1", "255.255.255.255", "::", "::1", "fe80::1%lo", "fd00:ec2::254",
        "ff02::1", "::ffff:127.0.0.1", "::ffff:169.254.169.254", "2002:7f00:1::", "2002:a9fe:a9fe::1",
        "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe",
    ],
)  # fmt: skip
def test_private(address: str) -> None:
    assert not is_outward(address)


class Names:
    """Name servers whose answer differs each time."""

    def __init__(self, *answers: list[str]) -> None:
        self.answers = list(answers)

    async def look_up(self, host: str, port: int) -> list[str]:
        await trio.lowlevel.checkpoint()
        return self.answers.pop(0)


class SlowNames:
    """Name servers that answer once they are let, as `socket.getaddrinfo` in a thread.

    Attributes:
        asked: number of look-ups.
    """

    def __init__(self, fault: OSError | None = None) -> None:
        self.asked = 0
        self.begun, self.may_answer = threading.Semaphore(0), threading.Semaphore(0)
        self._fault = fault

    def look_up(self, host: str, port: int, **named: Any) -> list[Any]:
        self.asked += 1
        self.begun.release()
        assert self.may_answer.acquire(timeout=PATIENCE_S)
        if self._fault is not None:
            raise self._fault
        return [(0, 0, 0, "", (f"192.0.2.{self.asked}", port))]


@pytest.mark.parametrize("is_given_up", [False, True])
async def test_dials_of_a_host_at_once_wait_for_one_look_up(
    monkeypatch: pytest.MonkeyPatch, *, is_given_up: bool
) -> None:
    """A webhook's 64 posts; the call that began the look-up may be cancelled meanwhile."""
    names, found = SlowNames(), list[list[str]]()
    monkeypatch.setattr("socket.getaddrinfo", names.look_up)
    look_ups = HostLookUps()

    async def ask() -> None:
        found.append(await look_ups.addresses("acme.example", 443))

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery, trio.open_nursery() as given_up:
            (given_up if is_given_up else nursery).start_soon(ask)
            assert await trio.to_thread.run_sync(lambda: names.begun.acquire(timeout=PATIENCE_S))
            for _ in range(63):
                nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            given_up.cancel_scope.cancel()
            names.may_answer.release()
        assert found == [["192.0.2.1"]] * (63 if is_given_up else 64)
        assert names.asked == 1
        names.may_answer.release()
        await ask()
    assert found[-1] == ["192.0.2.2"], "what was found before the call is not used"


async def test_a_name_without_address_is_so_for_all_that_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    names, refused = SlowNames(socket.gaierror(socket.EAI_NONAME, "no such name")), list[OSError]()
    monkeypatch.setattr("socket.getaddrinfo", names.look_up)
    look_ups = HostLookUps()

    async def ask() -> None:
        with pytest.raises(OSError, match="no such name") as told:
            await look_ups.addresses("acme.example", 443)
        refused.append(told.value)

    with trio.fail_after(PATIENCE_S):
        async with trio.open_nursery() as nursery:
            for _ in range(8):
                nursery.start_soon(ask)
            await trio.testing.wait_all_tasks_blocked()
            names.may_answer.release()
    assert (len(refused), names.asked) == (8, 1)


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    found: list[str] = []

    async def refuse(host: str, port: int, **named: Any) -> trio.abc.Stream:
        assert named["server_hostname"] == "acme.example"
        found.append(host)
        raise ConnectionRefusedError(f"{host} refuses")

    monkeypatch.setattr(outward, "dial", refuse)
    return found


async def test_an_answer_about_a_name_that_comes_late_leaves_no_time(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names(["93.184.215.14"])

    def judged(_: str) -> bool:
        autojump_clock.jump(7)
        return True

    async def late(*where: Any, timeout_s: float, **named: Any) -> trio.abc.Stream:
        assert timeout_s == 0
        return await dial(*where, timeout_s=timeout_s, **named)

    monkeypatch.setattr(outward, "dial", late)
    monkeypatch.setattr(outward, "is_outward", judged)
    with pytest.raises(TimeoutError, match="no connection within 5 s"):
        await dial_outward("acme.example", 443, tls=None, timeout_s=5, look_up=names.look_up)


async def test_the_address_that_was_judged_is_dialled_whatever_the_name_leads_to_next(
    dialled: list[str],
) -> None:
    names = Names(["10.0.0.1", "93.184.215.14", "93.184.215.15"], ["127.0.0.1"])
    with pytest.raises(OSError, match=r"93.184.215.15 refuses"):
        await dial_outward("acme.example", 443, tls=None, look_up=names.look_up)
    assert dialled == ["93.184.215.14", "93.184.215.15"]
    with pytest.raises(OSError, match=r"acme.example leads to a private address"):
        await dial_outward("acme.example", 443, tls=None, look_up=names.look_up)
    assert (len(dialled), names.answers) == (2, [])
