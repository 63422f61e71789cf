"""The trigger's commands. Exit codes: 0 done, 1 not done or not well, 2 refused, or no server to ask."""

from shared.terminal_application import Command, command_line
from trigger.commands_act import cancel_command, fire_command, rerun_command
from trigger.commands_alerts import (
    acknowledge_command,
    alert_command,
    alerts_command,
    silence_command,
    unsilence_command,
)
from trigger.commands_attempts import attempts_command
from trigger.commands_audit import audit_command
from trigger.commands_backfill import backfill_command, backfills_command, cancel_backfill_command
from trigger.commands_check import check_command
from trigger.commands_check_in import check_in_command
from trigger.commands_console import console_command
from trigger.commands_deploy import migrate_command, serve_command
from trigger.commands_doctor import doctor_command
from trigger.commands_forget import forget_account_command, prune_audit_command
from trigger.commands_jobs import jobs_command, preview_command
from trigger.commands_look import occurrences_command, show_command, status_command
from trigger.commands_maintenance import maintenance_add_command, maintenance_end_command, maintenance_list_command
from trigger.commands_notify import notify_command
from trigger.commands_pause import pause_command, resume_command, retire_command, unretire_command
from trigger.commands_prune import prune_command
from trigger.commands_queues import queues_command, retire_queue_command
from trigger.commands_redrive import redrive_command
from trigger.commands_restore import reconcile_command, restored_command
from trigger.commands_rights import rights_command
from trigger.commands_stats import deploy_marker_command, stats_command

_COMMANDS: tuple[Command, ...] = (
    ("serve", serve_command, ("serve", "serve --migrate")),
    ("check", check_command, ("check", "check --jobs billing.jobs,reports.jobs", "check --strict --database --json")),
    (
        "migrate",
        migrate_command,
        ("migrate", "migrate --only database", "migrate --sql > schema.sql", "migrate --definitions > parts.json"),
    ),
    ("rights", rights_command, ("rights", "rights --json --virtual-host matins > rights.json")),
    ("status", status_command, ("status", "status --zone Europe/Berlin", "status --json")),
    ("console", console_command, ("console", "console --address 127.0.0.1:9000")),
    ("jobs", jobs_command, ("jobs", "jobs --json")),
    (
        "preview",
        preview_command,
        (
            "preview invoice-run --count 30",
            "preview invoice-run --months 13 --notable",
            "preview --cron '30 2 * * *' --zone Europe/Berlin --gap skip --fold first --from 2026-10-20T00:00Z",
        ),
    ),
    (
        "occurrences",
        occurrences_command,
        ("occurrences invoice-run", "occurrences --state failed --state partial --since 2026-08-01T00:00Z"),
    ),
    (
        "show",
        show_command,
        ("show invoice-run:2026-08-25T02:00Z", "show invoice-run:2026-08-25T02:00Z --accounts failed --limit 200"),
    ),
    (
        "audit",
        audit_command,
        (
            "audit --job invoice-run --since 2026-08-01T00:00Z",
            "audit --kind pause --kind resume --json",
            "audit --verify --anchor heads.txt",
        ),
    ),
    ("attempts", attempts_command, ("attempts invoice-run:2026-08-25T02:00Z", "attempts invoice-run --days 30")),
    ("stats", stats_command, ("stats invoice-run", "stats invoice-run --last 100 --json")),
    (
        "deploy-marker",
        deploy_marker_command,
        (
            "deploy-marker billing-api --version 2026.8.25",
            "deploy-marker postgres --version 17.2 --at 2026-08-24T21:30Z",
        ),
    ),
    (
        "fire",
        fire_command,
        (
            "fire invoice-run --reason 'called by the outside scheduler'",
            "fire invoice-run --at 2026-08-25T02:00Z --reason 'the fleet was down' --wait",
            "fire invoice-run --ad-hoc --since 2026-08-01T00:00Z --reason 'for the auditors'",
        ),
    ),
    (
        "check-in",
        check_in_command,
        (
            "check-in legacy-report start --run $$",
            "check-in legacy-report fail --run $$ --message 'exit code 3'",
            "check-in legacy-report success --at 2026-08-25T02:00Z",
        ),
    ),
    (
        "rerun",
        rerun_command,
        (
            "rerun invoice-run:2026-08-25T02:00Z --failed --reason 'the tax service is back' --wait",
            "rerun charge:2026-08-25T02:00Z --account 4711 --reconciled --reason 'not in their books'",
        ),
    ),
    ("cancel", cancel_command, ("cancel invoice-run:2026-08-25T02:00Z --reason 'wrong price list'",)),
    (
        "pause",
        pause_command,
        (
            "pause invoice-run --reason 'the price list is wrong'",
            "pause charge --meanwhile hold --reason 'the provider is down until noon'",
        ),
    ),
    ("resume", resume_command, ("resume invoice-run --reason 'the price list is right'",)),
    ("retire", retire_command, ("retire invoice-run --reason 'replaced by invoice-batch'",)),
    ("unretire", unretire_command, ("unretire invoice-run --reason 'invoice-batch was withdrawn'",)),
    (
        "backfill",
        backfill_command,
        (
            "backfill invoice-run --from 2026-08-01T00:00Z --until 2026-08-25T00:00Z --dry-run",
            "backfill usage --from 2026-08-20T00:00Z --until 2026-08-25T00:00Z --mode all --reverse --reason 'late'",
        ),
    ),
    ("backfills", backfills_command, ("backfills invoice-run", "backfills --json")),
    ("cancel-backfill", cancel_backfill_command, ("cancel-backfill 7 --reason 'the wrong range'",)),
    ("alerts", alerts_command, ("alerts", "alerts --job invoice-run --all", "alerts --kind failed --json")),
    ("alert", alert_command, ("alert 7", "alert not_claimed:invoice-run:2026-08-25T02:00Z")),
    (
        "acknowledge",
        acknowledge_command,
        (
            "acknowledge 7 --reason 'the tax service is asked'",
            "acknowledge 7 8 failed:invoice-run:2026-08-25T02:00Z --reason 'run again at noon'",
        ),
    ),
    (
        "silence",
        silence_command,
        (
            "silence 7 --for 8h --reason 'mended in the morning'",
            "silence 7 --until 2026-08-26T06:00Z --reason 'the provider is back by then'",
        ),
    ),
    ("unsilence", unsilence_command, ("unsilence 7 --reason 'it is mended, and fails again'",)),
    (
        "maintenance add",
        maintenance_add_command,
        (
            "maintenance add invoice-run --for 2h --reason 'the tax service moves'",
            "maintenance add --all --since 2026-08-25T01:00Z --until 2026-08-25T04:00Z --reason 'the database moves'",
        ),
    ),
    ("maintenance list", maintenance_list_command, ("maintenance list", "maintenance list invoice-run --all --json")),
    ("maintenance end", maintenance_end_command, ("maintenance end 3 --reason 'it went faster'",)),
    (
        "prune",
        prune_command,
        ("prune --before 2026-06-01 --dry-run", "prune --before 2026-06-01 --reason 'kept for a quarter' --yes"),
    ),
    (
        "prune-audit",
        prune_audit_command,
        ("prune-audit --before 2025-01-01 --dry-run", "prune-audit --before 2025-01-01 --reason 'ten years' --yes"),
    ),
    (
        "forget-account",
        forget_account_command,
        ("forget-account 4711 --dry-run", "forget-account 4711 --reason 'asked to be forgotten' --yes"),
    ),
    ("notify", notify_command, ("notify", "notify --test", "notify --test --channel team --json")),
    ("queues", queues_command, ("queues", "queues --json")),
    ("retire-queue", retire_queue_command, ("retire-queue matins.work.default --reason 'the limit was raised'",)),
    (
        "redrive",
        redrive_command,
        (
            "redrive --dry-run",
            "redrive --message 0b0c7c1e-9d4f-4c0e-8d0a-1f3f6f6f2a11 --reason 'the tax library is mended'",
            "redrive --all --reason 'the workers had too little memory'",
        ),
    ),
    ("restored", restored_command, ("restored --reason 'the disk was put back to 01:00' --through 2026-08-25T01:00Z",)),
    ("reconcile", reconcile_command, ("reconcile", "reconcile --release --reason 'books compared' --json")),
    ("doctor", doctor_command, ("doctor", "doctor --json")),
)

application = command_line(
    "trigger",
    "The trigger plans, claims and publishes recurring work, and is the operator's command line.",
    _COMMANDS,
)


def main() -> None:
    """Run the command line."""
    application()
