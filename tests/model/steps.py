"""The names of the protocol's steps: which statement belongs to which, and the arrows from one to the next."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILES = {path.stem: path for package in ("shared", "trigger", "worker") for path in (ROOT / package / "sql").iterdir()}
TEXTS = {path.read_text(encoding="utf-8"): name for name, path in FILES.items()}
EFFECT = "insert into stepped.effect (occurrence, account, worker) values ($1, $2, $3)"
EFFECTS_OF = "insert into stepped.effect (occurrence, account, worker) select $1, one, $3 from unnest($2::text[]) one"
PROMISE = "insert into stepped.promise (account) values ($1), ($1)"

# What the operator of the model asks for itself.
NEWEST_BACKFILL = "select max(id) from matins.backfill"

# The step of each statement; those that only read lead up to theirs.
STEPS = {
    "create_job": "register",
    "record_revision": "register",
    "revise_job": "register",
    "revision_is_held": "register",
    "planned_occurrences": "register",
    "supersede_occurrences": "register",
    "refuse_occurrences": "register",
    "adopt_occurrences": "register",
    "planned_through": "plan",
    "plan_occurrences": "plan",
    "advance_plan": "plan",
    "lead": "lead",
    "resign": "lead",
    "due_jobs": "claim",
    "attempt_due": "claim",
    "due_occurrences": "claim",
    "active_occurrence": "claim",
    "occurrence_holder": "claim",
    "claim": "claim",
    "coalesce_occurrences": "decide",
    "settle_without_claim": "decide",
    "let_wait": "decide",
    "cancel_previous": "cancel",
    "take_over": "take over",
    "move_cursor": "page",
    "write_page": "page",
    "know_accounts": "page",
    "seal": "seal",
    "fail_fan_out": "fail fan-out",
    "release_claim": "release",
    "renew_claim": "renew claim",
    "publishable_occurrences": "publish",
    "in_flight": "publish",
    "again_rows": "publish",
    "first_rows": "publish",
    "waiting_accounts": "publish",
    "publish": "publish",
    "mark_published": "mark",
    "move_watermark": "mark",
    "give_back_lease": "give back lease",
    "deliver": "deliver",
    "read_occurrence": "start",
    "start_rows": "start",
    "lock_accounts": "start",
    "blocked_accounts": "start",
    "start_outside": "start",
    "start_alone": "start alone",
    "effect": "execute",
    "promise": "execute",
    "call": "execute",
    "called": "settle",
    "poison": "execute",
    "settle_succeeded": "settle",
    "settle_unsuccessful": "settle",
    "settle_outside": "settle",
    "renew_outside": "renew",
    "send": "send",
    "read_missed": "hand on",
    "ack": "ack",
    "reject": "reject",
    "undo_start": "undo start",
    "close_candidate": "close",
    "close_counts": "close",
    "close_errors": "close",
    "close_write": "close",
    "active_occurrences": "sweep",
    "stop_overdue": "deadline",
    "sweep_expired": "sweep expired",
    "lost_before": "sweep lost",
    "sweep_lost": "sweep lost",
    "cancel_pending": "cancel rows",
    "note_empty_queue": "note empty",
    "lock_occurrence": "operate",
    "write_standing": "operate",
    "skip_expected": "operate",
    "insert_backfill": "operate",
    "insert_backfilled": "operate",
    "expect_backfilled": "operate",
    "choose_backfilled": "operate",
    "end_backfill": "operate",
    "leave_out": "decide",
    "own_job": "claim",
    "open_own": "claim",
    "fail_left": "sweep expired",
    "cancel_occurrence": "cancel",
    "start_rerun": "rerun",
    "reopen_accounts": "rerun",
    "audit_rerun": "rerun",
    "take letter": "bury",
    "bury": "bury",
    "publish_alone": "publish alone",
    "advance_queue": "report",
}
# Statements that change what others may do next.
EFFECTS = frozenset(STEPS) - {
    "revision_is_held",
    "planned_occurrences",
    "planned_through",
    "due_jobs",
    "attempt_due",
    "due_occurrences",
    "active_occurrence",
    "occurrence_holder",
    "blocked_accounts",
    "publishable_occurrences",
    "in_flight",
    "again_rows",
    "first_rows",
    "waiting_accounts",
    "read_occurrence",
    "read_missed",
    "close_candidate",
    "close_counts",
    "close_errors",
    "active_occurrences",
    "lost_before",
    "lock_occurrence",
    "own_job",
    "take letter",
}
# Round trips of which nothing depends: they take no turn of their own.
QUIET = frozenset(
    {
        "savepoint",
        "rollback",
        "close_counts",
        "close_errors",
        "register_instance",
        "known_jobs",
        "server_identity",
        "vouch",
        "read_hold",
        "read_versions",
    }
)
_DONE = {
    "register": "registered",
    "plan": "planned",
    "claim": "claimed",
    "decide": "decided",
    "take over": "taken over",
    "page": "paged",
    "seal": "sealed",
    "fail fan-out": "fan-out failed",
    "release": "released",
    "renew claim": "claim renewed",
    "publish": "published",
    "mark": "marked",
    "deliver": "delivered",
    "start": "started",
    "start alone": "started alone",
    "settle": "settled",
    "renew": "renewed",
    "send": "sent",
    "undo start": "start undone",
    "close": "closed",
    "deadline": "deadline",
    "sweep expired": "swept expired",
    "sweep lost": "swept lost",
    "cancel rows": "rows cancelled",
    "cancel": "cancelled",
    "rerun": "rerun",
    "bury": "buried",
    "publish alone": "published alone",
}


def label_of(query: str) -> str:
    """Name a statement by its file, or by what it is."""
    found = TEXTS.get(query)
    if found is not None:
        return found
    if query in {EFFECT, EFFECTS_OF}:
        return "effect"
    if query == NEWEST_BACKFILL:
        return "find_backfill"
    if query == PROMISE:
        return "promise"
    word = query.split(None, 1)[0].rstrip(";")
    return word if word in {"begin", "commit"} else "rollback" if query == "rollback" else "savepoint"


def after_commit(step: str) -> str:
    """Name a step that holds."""
    return _DONE.get(step, step)
