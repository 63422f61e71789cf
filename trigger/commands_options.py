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
