"""The trigger's commands. Exit codes: 0 done, 1 not done or not well, 2 refused, or no server to ask."""

from shared.terminal_application import Command, command_line
from trigger.commands_act import cancel_command, fire_command, rerun_command
from trigger.commands_deploy import check_command, migrate_command, serve_command
from trigger.commands_doctor import doctor_command
from trigger.commands_jobs import jobs_command, preview_command
from trigger.commands_look import occurrences_command, show_command, status_command

_COMMANDS: tuple[Command, ...] = (
    ("serve", serve_command, ("serve", "serve --migrate")),
    ("check", check_command, ("check", "check --jobs billing.jobs,reports.jobs")),
    (
        "migrate",
        migrate_command,
        ("migrate", "migrate --only database", "migrate --sql > schema.sql", "migrate --definitions > parts.json"),
    ),
    ("status", status_command, ("status", "status --zone Europe/Berlin", "status --json")),
    ("jobs", jobs_command, ("jobs", "jobs --json")),
    (
        "preview",
        preview_command,
        (
            "preview invoice-run --count 30",
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
        "fire",
        fire_command,
        (
            "fire invoice-run --reason 'called by the outside scheduler'",
            "fire invoice-run --at 2026-08-25T02:00Z --reason 'the fleet was down' --wait",
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
