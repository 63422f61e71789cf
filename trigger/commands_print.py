"""What `status` and `show` print for a person."""

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from shared.terminal_tables import Times, print_line, print_table, show_seconds
from trigger.commands_print_alerts import print_alerts
from trigger.show import told_detail
from trigger.status import Status
from trigger.status_alerts import MOST_TOLD, seen_to

_ERRORS = ("class", "state", "accounts", "examples", "message")


def print_status(status: Status, times: Times) -> None:
    """Print the screen; what isn't well stands last, where a terminal shows it."""
    headings = ("job", "last", "state", "accounts", "not succeeded", "took", "next", "by")
    print_table(
        "Jobs", headings, [_job(one, times) for one in status.jobs], empty="no trigger has registered a job yet"
    )
    stopped = [f"{job['job']} is {job['standing']}" for job in status.jobs if job["standing"]]
    for one in stopped:
        print_line(one, "yellow")
    if stopped:
        print_line("")
    running = ("occurrence", "state", "done", "accounts", "unsuccessful", "since", "finish by")
    print_table("Running", running, [_running(one, times) for one in status.running])
    processes = ("process", "id", "host", "version", "region", "since", "seen")
    print_table("Live processes", processes, [_instance(one, times) for one in status.instances])
    if status.queues is not None:
        rows = [(one["queue"], one["messages"], one["consumers"]) for one in status.queues]
        print_table("Queues", ("queue", "waiting", "consumers"), rows)
    print_alerts(status.alerts[:MOST_TOLD], times, title="Open alerts")
    for planned in status.maintenance:
        of, until = planned["job"] or "all jobs", times.show(planned["until"])
        print_line(f"maintenance of {of} until {until}: {planned['reason']}", "yellow")
    for one in status.unseen:
        print_line(f"cannot tell: {one}", "yellow")
    for problem in status.problems:
        print_line(f"not well: {problem}", "red")
    if status.well:
        print_line(f"all is well{seen_to(status.alerts)}", "green")


def print_occurrence(shown: dict[str, Any], times: Times) -> None:
    """Print everything about one occurrence."""
    print_line(f"{shown['occurrence']}: {shown['state']}", "bold")
    print_table("", ("what", "value"), list(_facts(shown, times)))
    print_line()
    if shown["counts"]:
        names = list(shown["counts"])
        print_table("Accounts", names, [[shown["counts"][name] for name in names]])
    report, running = shown["report"], shown["progress"]
    classes = report["error_classes"] if report else running["error_classes"] if running else []
    if classes:
        print_table("Errors" if report else "Errors so far", _ERRORS, [_error(one) for one in classes])
    if shown["generations"]:
        _print_generations(shown["generations"], times)
    if shown["alerts"]:
        print_alerts(shown["alerts"], times, title="Open alerts")
    rows = [
        ("won" if one["won"] else "", one["instance"][:8], one["host"], one["region"], times.show(one["attempted_at"]))
        for one in shown["attempts"]
    ]
    print_table("Attempts", ("", "process", "host", "region", "at"), rows)
    rows = [
        (
            times.show(one["at"]),
            one["kind"],
            one["actor"] or (one["instance"] or "")[:8],
            one["reason"],
            told_detail(one["detail"]),
        )
        for one in shown["events"]
    ]
    print_table("Events", ("at", "event", "by", "reason", "detail"), rows)


def _print_generations(generations: list[dict[str, Any]], times: Times) -> None:
    rows = [
        (one["generation"], one["state"], times.show(datetime.fromisoformat(one["closed_at"])), *_counts(one))
        for one in generations
    ]
    headings = ("generation", "state", "closed", "succeeded", "failed", "dead", "cancelled")
    print_table("Earlier generations", headings, rows)
    for one in generations:
        if classes := one.get("error_classes"):
            print_table(f"Errors of generation {one['generation']}", _ERRORS, [_error(each) for each in classes])


def _error(one: dict[str, Any]) -> tuple[object, ...]:
    return (one["error_class"], one["state"], one["accounts"], ", ".join(one["examples"]), one["message"])


def print_accounts(accounts: dict[str, Any], times: Times) -> None:
    """Print a page of accounts, and how to go on behind it."""
    rows = [
        (
            one["account"],
            one["state"],
            one["attempts"],
            times.show(one["finished_at"] or one["started_at"]),
            times.show(one["not_before"]) if one["state"] == "pending" else None,
            one["error_class"],
            one["error"],
        )
        for one in accounts["page"]
    ]
    print_table("", ("account", "state", "tries", "at", "next try", "error", "message"), rows, empty="no such account")
    if accounts["next_after"] is not None:
        print_line(f"there are more: --after {accounts['next_after']!r}")


def _facts(shown: dict[str, Any], times: Times) -> Iterator[tuple[str, object]]:
    """Give what is worth a line, in the order of an occurrence's life."""
    window = shown["window"]
    yield "origin", shown["origin"].replace("_", "-")
    yield "window", f"{times.show(window['since'])} to {times.show(window['until'])}"
    if shown["due_at"] != shown["scheduled_at"]:
        yield "due", f"{times.show(shown['due_at'])}, put off by the job's jitter"
    for name in ("reason", "coalesced_into", "waits_for"):
        if shown[name]:
            yield name.replace("_", " "), shown[name]
    if shown["claimed_at"]:
        holder = shown["claimed_on"] or "a command line"
        yield "claimed", f"{times.show(shown['claimed_at'])} by {shown['claimed_by']} on {holder}"
    if shown["fired_by"]:
        run = f", as run {shown['run_id']}" if shown["run_id"] else ""
        yield "fired", f"by {shown['fired_by']}: {shown['fire_reason']}{run}"
    yield "generation", shown["generation"]
    if shown["ending"]:
        yield "ending", f"{shown['ending']}: {shown['ending_reason']}"
    if shown["fan_out_error"]:
        failures = f"{shown['fan_out_attempts']} times" if shown["fan_out_attempts"] else "before it could be read"
        yield "accounts' source", f"failed {failures}: {shown['fan_out_error']}"
    yield from _closed(shown, times)
    if shown["progress"]:
        yield from _progress(shown, times)
    if shown["report"]:
        yield from _report(shown["report"])


def _closed(shown: dict[str, Any], times: Times) -> Iterator[tuple[str, object]]:
    if shown["closed_at"]:
        yield "closed", f"{times.show(shown['closed_at'])}, after {show_seconds(shown['seconds'])}"
    if shown["pruned_before"]:
        yield (
            "accounts",
            f"pruned, with all that was due before {times.show(shown['pruned_before'])}; the report is kept",
        )


def _progress(shown: dict[str, Any], times: Times) -> Iterator[tuple[str, object]]:
    progress = shown["progress"]
    rate = f", {progress['per_second']:.1f} accounts/s" if progress["per_second"] else ""
    left = f", about {show_seconds(progress['seconds_left'])} left" if progress["seconds_left"] else ""
    total = progress["total"] if progress["total"] is not None else f"{shown['accounts_read']} read so far"
    yield "progress", f"{progress['done']} of {total}{rate}{left}"
    if progress["waiting"]:
        verb, whose = ("waits", "its") if progress["waiting"] == 1 else ("wait", "their")
        yield (
            "retries",
            f"{progress['waiting']} {verb} for {whose} next try, the next at {times.show(progress['next_try_at'])}",
        )
    yield "finish by", times.show(shown["finish_by"]) + (", which is over" if progress["overdue"] else "")


def _report(report: dict[str, Any]) -> Iterator[tuple[str, object]]:
    yield "retries", report["retries"]
    if report["nothing_to_do"]:
        yield "nothing to do", report["nothing_to_do"]
    if report["untouched_examples"]:
        yield "not touched", ", ".join(report["untouched_examples"])
    if durations := report["durations"]:
        named = ("median", "p95", "p99", "longest")
        yield "an account took", ", ".join(f"{name} {durations[name]:.3g}s" for name in named)


def _counts(generation: dict[str, Any]) -> list[int]:
    return [generation["counts"].get(name, 0) for name in ("succeeded", "failed", "dead", "cancelled")]


def _job(one: dict[str, Any], times: Times) -> tuple[object, ...]:
    last = one["last"] or {}
    took = None
    if last.get("closed_at") and last.get("opened_at"):
        took = (last["closed_at"] - last["opened_at"]).total_seconds()
    following = times.show(one["next_at"])
    if one["retired_at"]:
        following = "retired"
    elif one["paused_at"]:
        following = "paused"
    elif one["late_since"]:
        following = f"late since {times.show(one['late_since'])}"
    at = times.show(last.get("scheduled_at"))
    return (
        one["job"],
        at,
        last.get("state"),
        last.get("total"),
        last.get("unsuccessful"),
        show_seconds(took),
        following,
        _attempted_by(one),
    )


def _attempted_by(job: dict[str, Any]) -> str:
    """Say who attempts: the way, and the leader with its epoch."""
    leader = job["leader"]
    return f"leader {leader['instance'][:8]}, epoch {leader['epoch']}" if leader else str(job["coordination"])


def _running(one: dict[str, Any], times: Times) -> tuple[object, ...]:
    state = f"ending ({one['ending']})" if one["ending"] else one["state"]
    accounts = one["accounts"] if one["sealed"] else f"{one['accounts']} so far"
    until = times.show(one["finish_by"]) + (" (over)" if one["overdue"] else "")
    return (one["occurrence"], state, one["done"], accounts, one["unsuccessful"], times.show(one["opened_at"]), until)


def _instance(one: dict[str, Any], times: Times) -> tuple[object, ...]:
    seen = f"{show_seconds(one['silent_seconds'])} ago"
    return (one["kind"], one["id"][:8], one["host"], one["version"], one["region"], times.show(one["started_at"]), seen)
