"""The process of stories: a story that takes too long fails alone."""

import socket

import pytest

from support.oracles import running_stories

pytestmark = pytest.mark.oracle


def test_the_story_after_one_that_never_ends_is_heard() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, running_stories(within_s=0.2) as stories:
        node = f"http://127.0.0.1:{silent.getsockname()[1]}"
        keys = ["0x" + f"{key:064x}" for key in (1, 2, 3)]
        for _ in range(2):
            with pytest.raises(AssertionError, match="a story took more than 200 ms"):
                stories.told("ethers_otc", node, *keys)
