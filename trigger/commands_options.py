"""The options that several commands share."""

from typing import Annotated, TypeAlias

import typer

AsJson: TypeAlias = Annotated[bool, typer.Option("--json", help="Print JSON, instants in UTC.")]
Zone: TypeAlias = Annotated[str, typer.Option("--zone", metavar="ZONE", help="Show times in this zone beside UTC.")]
Reason: TypeAlias = Annotated[str, typer.Option("--reason", help="Why; kept for good in the audit trail.")]
Actor: TypeAlias = Annotated[
    str | None, typer.Option("--actor", help="Who acts; by default the user of this command line.")
]
Wait: TypeAlias = Annotated[
    bool | None,
    typer.Option("--wait/--no-wait", help="Wait for the end, with progress; by default on a terminal."),
]
Written: TypeAlias = Annotated[
    str, typer.Argument(metavar="OCCURRENCE", help="As `occurrences` lists it: invoice-run:2026-08-25T02:00Z.")
]
Reconciled: TypeAlias = Annotated[
    bool, typer.Option("--reconciled", help="The provider's books were compared: an old key may be used again.")
]
NewKey: TypeAlias = Annotated[
    bool, typer.Option("--new-key", help="New idempotency keys: a provider takes the accounts for new.")
]
AdHoc: TypeAlias = Annotated[
    bool, typer.Option("--ad-hoc", help="Run once beside the schedule, as an occurrence of its own.")
]
WindowSince: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--since",
        metavar="INSTANT",
        help="With --ad-hoc: its window begins here; by default at the last scheduled instant that was claimed.",
    ),
]
WindowUntil: TypeAlias = Annotated[
    str | None, typer.Option("--until", metavar="INSTANT", help="With --ad-hoc: its window ends here; by default now.")
]
At: TypeAlias = Annotated[
    str,
    typer.Option(
        "--at", metavar="INSTANT", help="A planned instant; `due`: the latest that is due, within start_within."
    ),
]
Deduplicate: TypeAlias = Annotated[
    bool, typer.Option("--deduplicate", help="0 too when it was claimed before: for schedulers that call again.")
]
Until: TypeAlias = Annotated[str | None, typer.Option("--until", metavar="INSTANT", help="It ends then, by itself.")]
Lasting: TypeAlias = Annotated[
    str | None, typer.Option("--for", metavar="TIME", help="Instead of --until: how long, as 30m, 8h or 2d.")
]
Alerts: TypeAlias = Annotated[
    list[str],
    typer.Argument(metavar="ALERT...", help="A number, as `alerts` lists it, or KIND:SUBJECT, as failed:OCCURRENCE."),
]
