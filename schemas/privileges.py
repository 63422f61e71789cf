"""Who may do what in the database: for each role, the verbs on each table, with columns where not all are needed.

It is as narrow as the statements that the role runs, and `migrate` grants it, the doctor compares it, and tests try
every verb that is not in it. No service owns a table; what the ledger's partitions hold is reached through the ledger.
A column that is left out is one that no statement has to change: an
account's id, its position, its idempotency key, or the time of an audit entry.
"""

from collections.abc import Mapping
from typing import Final

Columns = tuple[str, ...]
Verbs = Mapping[str, Columns]

TRIGGER: Final = "matins_trigger"
WORKER: Final = "matins_worker"
READER: Final = "matins_reader"
# No role of its own: what each job's own login may do.
HANDLER: Final = "matins_handler"

ALL: Final[Columns] = ()


def _of(columns: str) -> Columns:
    """Read column names with blanks between."""
    return tuple(columns.split())


READ: Final[Verbs] = {"select": ALL}
TABLE_VERBS: Final = ("select", "insert", "update", "delete", "truncate", "references", "trigger")

_HOLD: Final[Verbs] = {"select": ALL, "update": _of("held_since held_reason known_through server")}
_INSTANCE: Final[Verbs] = {
    "select": ALL,
    "insert": _of("id kind host version region message_version tzdata_version jobs queues definitions"),
    "update": _of("jobs queues definitions seen_at stopped_at beats skew"),
}

# What the watch changes, whoever looks; and what there is to tell, for whoever delivers.
_WATCH: Final[Mapping[str, Verbs]] = {
    "watch": {"select": ALL, "update": _of("looked_at looked_by held_at")},
    "alert": {
        "select": ALL,
        "insert": _of("kind subject job occurrence_id told detail opened_at opened_by notices next_notice_at"),
        "update": _of("told detail notices next_notice_at closed_at close_reason"),
    },
    "maintenance": READ,
    "comparison": {
        "select": ALL,
        "insert": _of("job revision compared_through next_at"),
        "update": _of("revision compared_through next_at"),
    },
    "progress": {
        "select": ALL,
        "insert": _of("occurrence_id seen moved_at"),
        "update": _of("seen moved_at"),
        "delete": ALL,
    },
    "forecast": {
        "select": ALL,
        "insert": _of("job judged_at judge_at duration lag"),
        "update": _of("judged_at judge_at duration lag"),
    },
    "notification": {"select": ALL, "insert": _of("alert_id event body created_at")},
}

# What whoever delivers changes.
_DELIVERY: Final[Mapping[str, Verbs]] = {
    "channel": {"select": ALL, "insert": _of("name spread_through turn_at"), "update": _of("spread_through turn_at")},
    "delivery": {
        "select": ALL,
        "insert": _of("channel thread place notification_id occurrence_id generation event created_at not_before"),
        "update": _of("state not_before attempts deliverer leased_until ended_at error"),
    },
}

TABLES: Final[Mapping[str, Mapping[str, Verbs]]] = {
    TRIGGER: {
        **_DELIVERY,
        **_WATCH,
        "environment": _HOLD,
        "migration": READ,
        "job": {
            "select": ALL,
            "insert": _of("name revision definition fingerprint known_since planned_through"),
            "update": _of(
                "revision definition fingerprint planned_through paused_at paused_by pause_reason meanwhile "
                "resumed_at retired_at retired_by retire_reason"
            ),
        },
        "job_revision": {
            "select": ALL,
            "insert": _of("job revision definition fingerprint effective_from recorded_by"),
        },
        "occurrence": {
            "select": ALL,
            "insert": _of(
                "job scheduled_at due_at variant origin state reason revision window_since window_until tzdata_version"
            ),
            "update": _of(
                "state origin reason revision window_since tzdata_version due_at generation epoch coalesced_into "
                "waits_for "
                "fired_by fire_reason claimed_by claimed_at lease_until cursor accounts_read fan_out_attempts "
                "fan_out_error sealed_at ending ending_reason finish_by opened_at closed_at total succeeded "
                "failed dead cancelled report trace_context run_id"
            ),
        },
        "backfill": {
            "select": ALL,
            "insert": _of("job since until mode reverse max_active actor reason"),
            "update": _of("state ended_at ended_by end_reason"),
        },
        "backfill_occurrence": {
            "select": ALL,
            "insert": _of("backfill_id occurrence_id generation"),
            "update": _of("left_out"),
        },
        "ledger": {
            "select": ALL,
            "insert": _of("occurrence_id scheduled_at account position generation state finished_at error_class error"),
            "update": _of(
                "state generation epoch attempts starts isolated nothing_to_do key_salt not_before published_at "
                "lease_until started_at finished_at worker error_class error result"
            ),
        },
        "account_lock": {"insert": _of("job account")},
        "publication": {"select": ALL, "insert": _of("occurrence_id through_position published_at")},
        "attempt": {
            "select": ALL,
            "insert": _of("job scheduled_at variant instance region attempted_at won host"),
            "update": _of("won"),
        },
        "instance": _INSTANCE,
        "handler_login": READ,
        "lease": {
            "select": ALL,
            "insert": _of("name holder until"),
            "update": _of("holder epoch until"),
            "delete": ALL,
        },
        "work_queue": {"select": ALL, "insert": _of("name empty_at"), "update": _of("empty_at")},
        "audit": {
            "select": ALL,
            "insert": _of("kind job occurrence_id instance actor actor_kind reason detail"),
        },
        "audit_chain": {"select": ALL, "insert": _of("position audit_id digest salt hash")},
        "audit_seal": {
            "select": ALL,
            "insert": _of(
                "number era first_look server position hash rows through_xid through_id highest_id sealed_by"
            ),
        },
        "alert": {
            **_WATCH["alert"],
            "update": _WATCH["alert"]["update"]
            + _of("acknowledged_at acknowledged_by acknowledge_reason silenced_until silenced_by silence_reason"),
        },
        "maintenance": {
            "select": ALL,
            "insert": _of("job since until actor reason"),
            "update": _of("until"),
            "delete": ALL,
        },
        "deploy": {"select": ALL, "insert": _of("system version at instance actor reason follows")},
        "console_session": {
            "select": ALL,
            "insert": _of("token_digest name means issuer subject claims"),
            "update": _of("seen_at form notice"),
            "delete": ALL,
        },
        "console_sign_in": {
            "select": ALL,
            "insert": _of("state_digest browser_digest return_path"),
            "delete": ALL,
        },
        "signed_call": {
            "select": ALL,
            "insert": _of("caller webhook_id digest received_at"),
            "update": _of("occurrence_id"),
            "delete": ALL,
        },
    },
    WORKER: {
        **_DELIVERY,
        **_WATCH,
        "environment": _HOLD,
        "migration": READ,
        "job": READ,
        "job_revision": READ,
        "trial": {"select": ALL, "insert": _of("job mark actor version")},
        "occurrence": {
            "select": ALL,
            "update": _of("state reason lease_until closed_at total succeeded failed dead cancelled report"),
        },
        "ledger": {
            "select": ALL,
            "update": _of(
                "state epoch attempts starts isolated nothing_to_do not_before published_at lease_until "
                "started_at finished_at worker error_class error result trace_context"
            ),
        },
        # Nobody writes the column: a right to lock a row is granted on one.
        "account_lock": {"select": ALL, "insert": _of("job account"), "update": _of("lockable")},
        "instance": _INSTANCE,
        "handler_login": READ,
        "publication": READ,
        "work_queue": {"select": ALL, "insert": _of("name started_through"), "update": _of("started_through")},
        "deploy": {"select": ALL, "insert": _of("system version instance follows")},
        # No actor: what a person has done, a worker cannot say.
        "audit": {"insert": _of("kind job occurrence_id instance reason detail")},
    },
    READER: {
        "environment": READ,
        "migration": READ,
        "job": READ,
        "job_revision": READ,
        "occurrence": READ,
        "backfill": READ,
        "backfill_occurrence": READ,
        "ledger": READ,
        "attempt": READ,
        "handler_login": READ,
        "instance": READ,
        "lease": READ,
        "audit": READ,
        "channel": READ,
        "audit_chain": READ,
        "audit_seal": READ,
        "alert": READ,
        "maintenance": READ,
        "notification": READ,
        "delivery": READ,
        "deploy": READ,
    },
}

ENSURE_PARTITION: Final = "ensure_ledger_partition(timestamp with time zone)"
SETTLE_ROWS: Final = (
    "settle_rows(bigint, timestamp with time zone, text[], bigint[], text[], integer[], interval[], text[], text[],"
    " boolean[], timestamp with time zone, text, timestamp with time zone, text)"
)
OPEN_OWN: Final = (
    "open_own(text, timestamp with time zone, text, text, integer, text, text, timestamp with time zone, interval,"
    " text, text, timestamp with time zone)"
)
FUNCTIONS: Final[Mapping[str, Columns]] = {
    TRIGGER: (ENSURE_PARTITION,),
    WORKER: (OPEN_OWN,),
    READER: (),
    HANDLER: (
        "settle(text, jsonb, boolean)",
        SETTLE_ROWS,
        "start_in_turn(bigint, timestamp with time zone, text[], integer)",
        "start(bigint, timestamp with time zone, text[], integer)",
    ),
}
