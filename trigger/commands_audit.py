"""The command `audit`: reading the audit trail, and verifying its chain."""

from typing import Annotated, Any, TypeAlias

import typer

from schemas.occurrence import format_instant
from shared import clock
from shared.terminal import FAILED, Refused, print_json, read_instant, run, settings_for, told
from shared.terminal_tables import Times, print_line, print_table, show_seconds
from trigger.audit_anchor import read_anchors
from trigger.audit_trail import Filter, list_audit, who
from trigger.commands_deploy import PROGRAM
from trigger.commands_options import AsJson, Zone
from trigger.reach import reach, read_identity
from trigger.verify_audit import MOST_TOLD, Verified, verify

MOST_LISTED = 10_000
_ONLY_AN_ANCHOR = (
    "whether the end was cut off, only an anchor shows: keep the line below elsewhere, and give it with --anchor"
)


Job: TypeAlias = Annotated[str | None, typer.Option("--job", metavar="JOB", help="Of this job.")]
Of: TypeAlias = Annotated[
    str | None, typer.Option("--occurrence", metavar="OCCURRENCE", help="Of this: invoice-run:2026-08-25T02:00Z.")
]
Kinds: TypeAlias = Annotated[
    list[str] | None, typer.Option("--kind", help="claim, takeover, cancel, pause, …; may be repeated.")
]
By: TypeAlias = Annotated[str | None, typer.Option("--actor", help="Ordered by this person or caller.")]
Since: TypeAlias = Annotated[str | None, typer.Option("--since", metavar="INSTANT", help="At or after this.")]
Until: TypeAlias = Annotated[str | None, typer.Option("--until", metavar="INSTANT", help="Before this.")]
Limit: TypeAlias = Annotated[int, typer.Option("--limit", min=1, max=MOST_LISTED)]
Verify: TypeAlias = Annotated[bool, typer.Option("--verify", help="Compute the whole chain again; lists nothing.")]
Anchor: TypeAlias = Annotated[
    str | None, typer.Option("--anchor", metavar="HASH@POSITION|FILE", help="A head kept elsewhere, or a log of them.")
]


def audit_command(  # noqa: PLR0913 - each is an option of the command line
    *,
    job: Job = None,
    occurrence: Of = None,
    kind: Kinds = None,
    by: By = None,
    since: Since = None,
    until: Until = None,
    limit: Limit = 50,
    check: Verify = False,
    anchor: Anchor = None,
    zone: Zone = "UTC",
    as_json: AsJson = False,
) -> None:
    """Show who or what did what, when and why, the latest first; or verify that none of it was changed.

    With --verify, exit code 0: the trail is whole, as far as an anchor can tell. 1: rows were altered, removed or
    inserted, or the chain is not the anchor's; each of the first is named. 2: cannot tell.
    """
    with told(PROGRAM):
        if anchor is not None and not check:
            raise Refused("--anchor: add --verify, which compares it")
        if not check:
            _list(_filter(job, occurrence, kind, by, since, until), limit, Times(zone), as_json=as_json)
            return
        if any((job, occurrence, kind, by, since, until)):
            raise Refused("--verify looks at the whole trail: leave out what would narrow it")
        _verify(anchor, as_json=as_json)


def _filter(
    job: str | None, written: str | None, kinds: list[str] | None, by: str | None, since: str | None, until: str | None
) -> Filter:
    identity = read_identity(written) if written else None
    if identity is not None and job not in {None, identity.job}:
        raise Refused(f"--job: {identity} is of {identity.job}")
    return Filter(
        job,
        identity,
        tuple(kinds or ()),
        by,
        read_instant("--since", since) if since else None,
        read_instant("--until", until) if until else None,
    )


def _list(asked: Filter, limit: int, times: Times, *, as_json: bool) -> None:
    settings = settings_for("database_url")

    async def look() -> list[dict[str, Any]]:
        async with reach(settings) as session:
            return await list_audit(session, asked, limit)

    found = run(look)
    if as_json:
        print_json(found)
        return
    headings = ("at", "what", "of", "by", "why", "before", "after", "more")
    print_table("", headings, [_listed(one, times) for one in found], empty="no entry")


def _verify(anchor: str | None, *, as_json: bool) -> None:
    anchors = read_anchors(anchor) if anchor else {}
    settings = settings_for("database_url")

    async def look() -> Verified:
        async with reach(settings) as session:
            return await verify(session, anchors)

    verified = run(look)
    if as_json:
        print_json(_as_json(verified))
    else:
        _print(verified)
    if verified.found:
        raise typer.Exit(FAILED)


def _as_json(verified: Verified) -> dict[str, Any]:
    return {
        "whole": not verified.found,
        "problems": verified.problems,
        "found": verified.found,
        "rows": verified.rows,
        "position": verified.position,
        "hash": verified.hash.hex(),
        "pruned_through": verified.pruned_through,
        "redacted": verified.redacted,
        "unsealed": verified.unsealed.rows,
        "oldest_unsealed": verified.unsealed.oldest,
        "anchors": verified.anchors,
    }


def _print(verified: Verified) -> None:
    for problem in verified.problems:
        print_line(f"{problem.what}: {problem.told}", "red")
    if verified.found > MOST_TOLD:
        print_line(f"and {verified.found - MOST_TOLD} more")
    state = "NOT whole" if verified.found else "whole"
    print_line(f"the audit trail is {state}: {verified.rows} sealed rows, through position {verified.position}", "bold")
    if verified.pruned_through:
        print_line(f"it begins behind position {verified.pruned_through}: what was before is pruned")
    if verified.redacted:
        print_line(
            f"{verified.redacted} rows are redacted: `forget-account` has said so, and what they say now is sealed"
        )
    print_line(_told_tail(verified))
    if verified.anchors:
        print_line(f"compared with {verified.anchors} anchors")
    else:
        print_line(_ONLY_AN_ANCHOR)
    if verified.position:
        print_line(f"{verified.hash.hex()}@{verified.position}")


def _told_tail(verified: Verified) -> str:
    tail = verified.unsealed
    if tail.oldest is None:
        return "all rows are sealed"
    age = show_seconds((clock.utc_now() - tail.oldest).total_seconds())
    since = format_instant(tail.oldest.replace(microsecond=0))
    return f"{tail.rows} rows wait for the sealer, the oldest since {since} ({age}): changes to them would not be seen"


def _listed(one: dict[str, Any], times: Times) -> tuple[object, ...]:
    more = {name: value for name, value in one["detail"].items() if name not in {"before", "after"}}
    told = ", ".join(f"{name} {value}" for name, value in more.items() if value is not None)
    of = one["occurrence"] or one["job"]
    return (times.show(one["at"]), one["kind"], of, who(one), one["reason"], one["before"], one["after"], told)
