"""`cambist completion`: a script by which a shell completes commands, options and their values.

source <(cambist completion bash)          in ~/.bashrc; zsh alike in ~/.zshrc
cambist completion fish > ~/.config/fish/completions/cambist.fish
"""

import click
from click.shell_completion import get_completion_class

_VARIABLE = "_CAMBIST_COMPLETE"


@click.command("completion", short_help="Print a script that completes commands in a shell.")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print the script by which SHELL completes cambist's commands and options.

    \b
    bash    source <(cambist completion bash)        at the end of ~/.bashrc
    zsh     source <(cambist completion zsh)         at the end of ~/.zshrc
    fish    cambist completion fish > ~/.config/fish/completions/cambist.fish
    """
    found = get_completion_class(shell)
    if found is None:
        raise click.UsageError(f"no completion for {shell}")
    click.echo(found(ctx.find_root().command, {}, "cambist", _VARIABLE).source())
