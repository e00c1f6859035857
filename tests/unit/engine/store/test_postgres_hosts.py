"""Several database servers: which parameters each gets, and which of the connections is used."""

import threading
from typing import Any

import pytest

from cambist.engine.store.postgres.postgres_hosts import by_host, first_opened
from support.patience import PATIENCE_S

PRIMARY = {"target_session_attrs": "read-write"}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"host": "a", "port": "1", "dbname": "d"}, [{"host": "a", "port": "1", "dbname": "d"}]),
        ({"dbname": "d"}, [{"dbname": "d"}]),
        (
            {"host": "a,b", "port": "1,2", "user": "u"},
            [
                PRIMARY | {"host": "a", "port": "1", "user": "u"},
                PRIMARY | {"host": "b", "port": "2", "user": "u"},
            ],
        ),
        ({"host": "a,b", "port": "1"}, [PRIMARY | {"host": host, "port": "1"} for host in "ab"]),
        ({"host": "a,b"}, [PRIMARY | {"host": host} for host in "ab"]),
        (
            {"host": "a,b", "hostaddr": "10.0.0.1,10.0.0.2", "target_session_attrs": "any"},
            [
                {"host": "a", "hostaddr": "10.0.0.1", "target_session_attrs": "any"},
                {"host": "b", "hostaddr": "10.0.0.2", "target_session_attrs": "any"},
            ],
        ),
        ({"host": "a,b,c", "port": "1,2"}, [{"host": "a,b,c", "port": "1,2"}]),
    ],
    ids=["one", "none", "two", "one port for both", "no port", "addresses", "lists that do not fit"],
)
def test_each_host_has_its_own_parameters(given: dict[str, Any], found: list[dict[str, Any]]) -> None:
    assert by_host(given) == found


class Connection:
    def __init__(self) -> None:
        self.ended = threading.Event()

    @property
    def closed(self) -> bool:
        return self.ended.is_set()

    def close(self) -> None:
        self.ended.set()


def test_the_first_that_opens_is_used_and_a_later_one_is_closed() -> None:
    first, later, may_open = Connection(), Connection(), threading.Event()

    def opens_later() -> Connection:
        assert may_open.wait(PATIENCE_S)
        return later

    def fails() -> Connection:
        raise ConnectionRefusedError

    assert first_opened([opens_later, fails, lambda: first]) is first
    assert not first.closed
    may_open.set()
    assert later.ended.wait(PATIENCE_S)


def test_where_none_opens_each_error_is_told() -> None:
    def refuses() -> Connection:
        raise ConnectionRefusedError("refused")

    def reads_only() -> Connection:
        raise PermissionError("session is read-only")

    with pytest.raises(ExceptionGroup) as caught:
        first_opened([refuses, reads_only])
    assert {str(error) for error in caught.value.exceptions} == {"refused", "session is read-only"}
