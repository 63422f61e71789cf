"""A process's command line: its commands with examples, `--version`, and help that says what the exit codes mean."""

from collections.abc import Callable, Iterable
from inspect import getmodule
from typing import Annotated, Any, TypeAlias

import typer

from shared.terminal import EXIT_CODES
from shared.version import VERSION

Command: TypeAlias = tuple[str, Callable[..., Any], tuple[str, ...]]


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer calls it with the option's value
    if wanted:
        typer.echo(VERSION)
        raise typer.Exit


def _options(
    *,
    _version_wanted: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the release and end.")
    ] = False,
) -> None:
    """Take the options that come before a command."""


def command_line(program: str, purpose: str, commands: Iterable[Command]) -> typer.Typer:
    """Make the command line of `python -m <program>`; each command is its name, its function and its examples.

    A name of two words, as `maintenance add`, is a command of the group that the first one names.
    """
    application = typer.Typer(
        name=program,
        help=f"{purpose} All settings come from MATINS_… variables; see the README.",
        epilog=EXIT_CODES,
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
        callback=_options,
    )
    groups: dict[str, typer.Typer] = {}
    for name, command, examples in commands:
        epilog = "\n\n".join(("Examples:", *(f"python -m {program} {example}" for example in examples)))
        group, _, own = name.rpartition(" ")
        if group and group not in groups:
            groups[group] = typer.Typer(no_args_is_help=True, help=_purpose(command))
            application.add_typer(groups[group], name=group)
        (groups[group] if group else application).command(name=own, epilog=epilog)(command)
    return application


def _purpose(command: Callable[..., Any]) -> str:
    """Say what a group is for: the first line of what its module is about."""
    return (getmodule(command).__doc__ or "").partition("\n")[0]
