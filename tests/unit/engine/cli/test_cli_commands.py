"""A mistyped command is answered with the commands that are spelled alike."""

import pytest
from click.testing import CliRunner

from cambist.engine.cli import cli


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        (["swp"], "No such command 'swp'. Did you mean 'swap' or 'order swap'?"),
        (["order", "swpa"], "No such command 'swpa'. Did you mean 'swap'?"),
        (["limit"], "No such command 'limit'. Did you mean 'order limit'?"),
        (["watch"], "No such command 'watch'. Did you mean 'order watch' or 'otc watch'?"),
        (["makers", "exclud"], "No such command 'exclud'. Did you mean 'exclude'?"),
        (["xyzzy"], "No such command 'xyzzy'."),
        (["--versoin"], "No such option '--versoin'. Did you mean '--version'?"),
    ],
)
def test_a_mistyped_command(typed: list[str], told: str) -> None:
    result = CliRunner().invoke(cli, typed)
    assert result.exit_code == 2
    assert result.stderr.splitlines()[-1] == f"Error: {told}"
