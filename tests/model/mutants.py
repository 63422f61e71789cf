"""The table of mutants: each guard and rule taken away, and the runs that notice."""

from tests.model.mutation import Edit, Mutant

# Seeds that are known to notice soon; those behind them are tried when a change of the product has moved the runs.
KNOWN_SEEDS = {
    "a chunk that failed is everybody's": 8,
    "a claim takes a row that is not expected": 7,
    "a close counts before the last row is settled": 16,
    "a close does not ask the state": 3,
    "a mark does not state the epoch": 8,
    "a mark waits for executing rows": 6,
    "a new definition supersedes nothing": 16,
    "a page states neither epoch nor cursor": 10,
    "a pause that holds skips": 4,
    "a paused job is fired by hand": 7,
    "a paused job's backfill goes on": 2,
    "a re-run does not look at its neighbours": 10,
    "a re-run keeps the tries": 2,
    "a re-run of a fan-out that never ended runs": 6,
    "a resume leaves what fell due meanwhile": 3,
    "a start in a transaction locks nothing": 2,
    "a sweep keeps the epoch": 6,
    "a takeover waits for locked rows": 12,
    "a worker runs what was due before it started": 2,
    "accounts are taken from live workers": 15,
    "an outside settle does not ask the state": 6,
    "an outside settle states no epoch": 11,
    "nobody ends what a dead worker has left": 10,
    "nobody takes over": 3,
    "nothing is ever too late": 2,
    "nothing is lost": 3,
    "outside calls start after a cancel": 6,
    "planning takes decided rows back": 2,
    "published rows are published again": 5,
    "silent workers keep their accounts": 2,
    "the next does not wait for the close of the one that it cancels": 13,
    "the publisher's lease is held for good": 2,
    "the watermark is not asked": 10,
    "the watermark passes over a gap": 7,
    "what a backfill runs costs the schedule its run": 4,
    "what a live worker runs is taken from it": 23,
    "what stays is not adopted": 8,
    "what still reads its accounts is not open": 3,
}


def mutant(rule: str, name: str, profile: str, *edits: tuple[str, str, str]) -> Mutant:
    """Give a row of the table."""
    return Mutant(rule, name, tuple(Edit(*edit) for edit in edits), profile, KNOWN_SEEDS.get(name, 1))


MUTANTS = [
    # 1. Revisions.
    mutant(
        "1",
        "an old release claims",
        "revisions",
        ("trigger.claim:claim_due", "is_current(known, revision)", 'is_current(known, known["revision"])'),
        ("claim", "and o.revision = $6 ", "and (o.revision = $6 or true) "),
    ),
    mutant(
        "1",
        "an old release plans",
        "revisions for days",
        ("trigger.plan:plan_ahead", "is_current(known, revision)", 'is_current(known, known["revision"])'),
    ),
    mutant(
        "1",
        "a claimed partner does not refuse",
        "moves_the_schedule",
        ("trigger.replan:replan", "for one in old if one.claimed", "for one in old if one.claimed and False"),
    ),
    mutant(
        "1",
        "a new definition supersedes nothing",
        "revisions",
        ("supersede_occurrences", "and state = 'expected'", "and false"),
    ),
    mutant(
        "1",
        "what was superseded does not return",
        "revisions",
        ("plan_occurrences", "where known.state = 'skipped'", "where false"),
    ),
    mutant(
        "1",
        "planning takes decided rows back",
        "revisions",
        (
            "plan_occurrences",
            "where known.state = 'skipped' and known.reason in ('superseded', 'calendar')",
            "where true",
        ),
    ),
    mutant(
        "1", "what stays is not adopted", "revisions", ("adopt_occurrences", "and o.state = 'expected'", "and false")
    ),
    # 2, 3. The claim, under the job row's lock.
    mutant("2", "a claim takes a row that is not expected", "fired", ("claim", "and o.state = 'expected'", "")),
    mutant(
        "2",
        "a claim takes what is not due",
        "fired",
        ("claim", "and o.revision = $6 and o.due_at <= clock.now", "and o.revision = $6"),
        ("trigger.claim:claim_one", "Pruned | OnHold | NotDue", "Pruned | OnHold"),
        ("trigger.claim:claim_one", 'if holder.state == "expected":', "if getattr(holder, 'state', '') == 'expected':"),
    ),
    mutant("3", "the job row is not locked", "claims_two_at_once", ("lock_job", "for no key update", "")),
    mutant(
        "3",
        "an active occurrence is not looked for",
        "single",
        ("active_occurrence", "state in ('claimed', 'running')", "state = 'claimed' and false"),
    ),
    mutant(
        "3",
        "what becomes due meanwhile is fired without a look",
        "fires_at_the_second",
        ("trigger.claim:claim_one", "Pruned | OnHold | NotDue", "Pruned | OnHold"),
        ("trigger.claim:claim_one", 'if holder.state == "expected":', "if getattr(holder, 'state', '') == 'expected':"),
    ),
    # 4. Catching up.
    mutant(
        "4",
        "planning goes on from now",
        "long down",
        (
            "trigger.plan:plan_ahead",
            "occasions(planned_through, target)",
            "occasions(max(planned_through, present), target)",
        ),
    ),
    mutant(
        "4",
        "nothing is ever too late",
        "late",
        ("trigger.catch_up:catch_up", "_parted(open_ones, decisions.catch_up_within, now)", "([], open_ones)"),
    ),
    mutant(
        "4",
        "what was covered runs again",
        "fires_the_later_of_two",
        ("trigger.catch_up:catch_up", "if one.covered_by is None", "if True"),
    ),
    mutant(
        "4",
        "all are caught up at once",
        "every instant",
        ("trigger.overlap:without_overlap", "if not active or decisions.overlap", "if True or decisions.overlap"),
    ),
    mutant(
        "20",
        "the next does not wait for the close of the one that it cancels",
        "cancel previous",
        ("active_occurrence", "state in ('claimed', 'running')", "state in ('claimed', 'running') and ending is null"),
    ),
    mutant(
        "22",
        "an account does not wait for the occurrences before",
        "by account",
        ("blocked_accounts", "(others.is_earlier or l.state = 'running')", "l.state = 'running'"),
    ),
    mutant(
        "22",
        "what still reads its accounts is not open",
        "by account",
        ("blocked_accounts", "or exists (select from others where others.is_earlier and others.may_come)", ""),
    ),
    mutant(
        "22",
        "the lock of an account is not asked",
        "by account",
        ("blocked_accounts", "given.account <> all ($3::text[])", "false"),
    ),
    # 5. Attempts.
    mutant("5", "an attempt is recorded each time", "claims", ("attempt_due", "on conflict do nothing", "")),
    # 6. Fan-out.
    mutant(
        "6",
        "a page states neither epoch nor cursor",
        "pages",
        ("move_cursor", "epoch = $2 and", "(epoch = $2 or true) and"),
        ("move_cursor", "and cursor is not distinct from $3", "and ($3::text is null or true)"),
    ),
    mutant(
        "6",
        "a page is written behind the end",
        "writes_a_page_behind_the_end",
        ("move_cursor", "epoch = $2 and state = 'claimed' and ending is null and", "(epoch = $2 or true) and"),
    ),
    mutant(
        "6",
        "cursor and rows commit apart",
        "pages",
        ("trigger.fan_out:write_page", "work.database.transaction()", "work.database.session()"),
    ),
    mutant("6", "nobody takes over", "pages", ("take_over", "and silent.lease_until < clock.now", "and false")),
    mutant(
        "6",
        "a takeover waits for locked rows",
        "pages",
        ("take_over", "for no key update of silent skip locked", "for no key update of silent"),
    ),
    # 7. Publishing.
    mutant(
        "7",
        "the publisher's lease is held for good",
        "single",
        ("take_lease", "or held.until < coalesce($4::timestamptz, clock_timestamp())", ""),
    ),
    mutant(
        "7",
        "in flight is not bounded",
        "narrow outage",
        ("trigger.publish:publish_pass", "work.bound - in_flight", "work.bound"),
    ),
    mutant(
        "7",
        "the watermark passes over a gap",
        "outage",
        ("trigger.publish:_publish_first", "            break\n", "            continue\n"),
    ),
    mutant(
        "7",
        "the watermark is not asked",
        "nobody works",
        ("first_rows", "and l.position > $3", "and (l.position > $3 or true)"),
    ),
    # 8. Marks.
    mutant("8", "a mark does not state the epoch", "marks", ("mark_published", "and l.epoch = given.epoch ", "")),
    mutant(
        "8",
        "a mark waits for executing rows",
        "marks",
        ("mark_published", "for update of l skip locked", "for update of l"),
    ),
    mutant("8", "published rows are published again", "slow peace", ("again_rows", "and l.published_at is null", "")),
    # 9. Failing fan-outs.
    mutant(
        "9",
        "a failing source is tried for ever",
        "never read",
        ("fail_fan_out", "ending = case when fan_out_attempts + 1 >= $4 then 'fan_out' end", "ending = null"),
        ("fail_fan_out", "ending_reason = case when fan_out_attempts + 1 >= $4 then $3 end", "ending_reason = null"),
        ("take_over", "former.attempts >= $4::integer then", "former.attempts >= $4::integer and false then"),
    ),
    mutant(
        "9",
        "retries are not counted",
        "single",
        ("settle_unsuccessful", "attempts = l.attempts + given.charged", "attempts = l.attempts"),
    ),
    # 10. The row's epoch.
    mutant(
        "10",
        "an outside settle states no epoch",
        "outside frozen",
        ("settle_outside", "and epoch = $4", "and (epoch = $4 or true)"),
    ),
    mutant(
        "10",
        "an outside settle does not ask the state",
        "outside frozen",
        ("settle_outside", "and state = 'running' and epoch = $4", "and (epoch = $4 or true)"),
    ),
    mutant(
        "10",
        "a start does not ask the state",
        "outside frozen",
        ("start_outside", "and l.state = 'pending' and", "and"),
    ),
    mutant(
        "10",
        "a start waits for locked rows",
        "copies",
        ("start_rows", "for update of l skip locked", "for update of l"),
    ),
    mutant(
        "10",
        "a start in a transaction locks nothing",
        "copies",
        ("start_rows", "for update of l skip locked", ""),
        ("settle_succeeded", "and l.state = 'pending'", ""),
    ),
    mutant(
        "10",
        "start and settle ask no state",
        "copies",
        ("start_rows", "and l.state = 'pending' and", "and"),
        ("settle_succeeded", "and l.state = 'pending'", ""),
    ),
    # 11. No row is not settled.
    mutant(
        "11",
        "a busy account is acknowledged away",
        "peace",
        ("worker.handle:Handling._missed", 'row["state"] in {"pending", "running"}', "False"),
    ),
    # 12. Retries.
    mutant(
        "12",
        "a retry starts before its time",
        "copies",
        (
            "start_rows",
            "and (l.not_before is null or l.not_before <= coalesce($5::timestamptz, clock_timestamp()))",
            "and ($5::timestamptz is null or true)",
        ),
    ),
    mutant(
        "12",
        "an outside retry starts before its time",
        "outside copies",
        (
            "start_outside",
            "and (l.not_before is null or l.not_before <= coalesce($5::timestamptz, clock_timestamp()))",
            "and ($5::timestamptz is null or true)",
        ),
    ),
    mutant(
        "12",
        "the publisher does not wait for a retry's own message",
        "slow peace",
        (
            "again_rows",
            "and (l.not_before is null or l.not_before + $3::interval <= coalesce($5::timestamptz, clock_timestamp()))",
            "and (l.not_before is null or $3::interval is not null)",
        ),
    ),
    # 13. Killers.
    mutant(
        "13",
        "starts are not counted",
        "poison",
        ("start_alone", "starts = l.starts + case when startable.allowed then 1 else 0 end", "starts = l.starts"),
    ),
    mutant(
        "13",
        "outside starts are not counted",
        "poison outside",
        ("start_outside", "starts = l.starts + case when startable.allowed then 1 else 0 end", "starts = l.starts"),
    ),
    mutant(
        "13",
        "a redelivery is not suspect",
        "poison",
        ("worker.parcel:Parcel.suspect", "self.message.isolated or self.delivery.redelivered", "False"),
    ),
    mutant(
        "13",
        "any dead letter buries",
        "dead letters",
        ("bury", "and state = 'pending' and starts >= $5", "and state = 'pending'"),
    ),
    mutant(
        "13",
        "the innocent are not published again",
        "dead letters",
        ("publish_alone", "and l.starts < $5", "and false"),
    ),
    # 14, 16. The job's code in our transaction.
    mutant(
        "14",
        "a failed commit is everybody's",
        "broken in chunks",
        ("worker.handle:Handling._singly", "for account in batch.accounts:", "for _ in (None,):"),
        (
            "worker.handle:Handling._singly",
            "Batch(batch.occurrence, batch.generation, (account,), batch.published_at)",
            "batch",
        ),
        ("worker.handle:Handling._singly", "if len(batch.accounts) == 1:", "if True:"),
        ("worker.savepoints:Savepoints.run", "leave = CHECK +", "leave = CHECK.split('; ', 2)[2] +"),
    ),
    mutant(
        "14",
        "a failed account keeps its effect",
        "single",
        ("worker.savepoints:Savepoints._undo", "UNDO + following", "UNDO.partition(';')[2] + following"),
    ),
    mutant(
        "15",
        "a frozen worker keeps its transaction",
        "frozen",
        ("worker.savepoints:silent_at_most", "{round(silence.total_seconds() * 1000)}", "0"),
    ),
    mutant(
        "15",
        "a frozen trigger keeps its transaction",
        "frozen",
        (
            "shared.postgres:transaction",
            "await session.execute(f\"set local idle_in_transaction_session_timeout = '{SILENCE_SECONDS}s'\")",
            "pass",
        ),
    ),
    mutant(
        "16",
        "who is not named has succeeded",
        "set based",
        ("worker.outcome:of_chunk", 'NotReported("the handler did not name it")', "SUCCEEDED"),
    ),
    mutant(
        "16",
        "a chunk that failed is everybody's",
        "set based",
        ("worker.transaction:Runner._set_based", "isinstance(said, BaseException) and len(group) > 1", "False"),
        (
            "worker.transaction:Runner._set_based",
            "outcomes[group[0]] = self.tries.after(said, attempts[group[0]], self.chance())",
            "outcomes.update({one: self.tries.after(said, attempts[one], self.chance()) for one in group})",
        ),
    ),
    # 17. Outside effects.
    # 18. Closing.
    mutant(
        "18",
        "a close does not state the generation",
        "closes_an_earlier_generation",
        ("close_write", "and o.generation = $2 ", "and (o.generation = $2 or true) "),
    ),
    mutant(
        "18",
        "a close looks for no open row",
        "closes",
        ("close_candidate", "l.finished_at is null", "false"),
        ("close_write", "l.finished_at is null", "false"),
    ),
    mutant(
        "18",
        "a close counts before the last row is settled",
        "closes",
        ("close_candidate", "l.finished_at is null", "false"),
    ),
    mutant(
        "18",
        "a close overlooks a cancel",
        "closes_what_is_cancelled_meanwhile",
        ("close_write", "and o.ending is not distinct from $12", "and ($12::text is null or true)"),
    ),
    mutant(
        "18",
        "a close does not wait for the seal",
        "closes_before_the_seal",
        ("close_candidate", "and (o.sealed_at is not null or o.ending is not null)", ""),
        ("close_write", "and (o.sealed_at is not null or o.ending is not null)", ""),
    ),
    mutant(
        "18",
        "a close does not ask the state",
        "closes",
        ("close_candidate", "and o.state in ('claimed', 'running')", ""),
        ("close_write", "and o.state in ('claimed', 'running')", ""),
    ),
    mutant("18", "nobody closes", "single", ("close_candidate", "o.state in ('claimed', 'running')", "false")),
    # 19. Lost messages.
    mutant(
        "19",
        "age alone is loss",
        "outage",
        ("lost_before", "greatest(started_through, empty_at) - $3::interval", "'infinity'"),
        ("lost_before", "and (started_through is not null or empty_at is not null)", ""),
    ),
    mutant(
        "19",
        "nothing is lost",
        "losses",
        ("sweep_lost", "set published_at = null", "set published_at = l.published_at"),
    ),
    mutant(
        "19",
        "lost first publishes are not looked for",
        "losses",
        ("sweep_lost", "((epoch = 0 and position", "((false and position"),
    ),
    mutant(
        "19",
        "silent workers keep their accounts",
        "outside frozen",
        (
            "sweep_expired",
            "       and l.lease_until < coalesce($5::timestamptz, clock_timestamp())",
            "       and false",
        ),
    ),
    mutant(
        "19",
        "accounts are taken from live workers",
        "outside",
        (
            "sweep_expired",
            "       and lease_until < coalesce($5::timestamptz, clock_timestamp())",
            "       and $5::timestamptz is null",
        ),
        ("sweep_expired", "       and l.lease_until < coalesce($5::timestamptz, clock_timestamp())", ""),
    ),
    mutant(
        "19",
        "a sweep keeps the epoch",
        "outside frozen",
        ("sweep_expired", "epoch = l.epoch + 1", "epoch = l.epoch"),
        ("start_outside", "epoch = l.epoch + 1", "epoch = l.epoch"),
    ),
    # 20. Cancelling.
    mutant(
        "20",
        "accounts start after a cancel",
        "cancels",
        (
            "start_rows",
            "where not exists (select 1 from matins.occurrence o where o.id = $1 and o.ending is not null)",
            "",
        ),
    ),
    mutant(
        "20",
        "outside calls start after a cancel",
        "outside cancels",
        (
            "start_outside",
            "and not exists (select 1 from matins.occurrence o where o.id = $1 and o.ending is not null)",
            "",
        ),
    ),
    mutant(
        "20",
        "lone accounts start after a cancel",
        "cancels alone",
        (
            "start_alone",
            "and not exists (select 1 from matins.occurrence o where o.id = $1 and o.ending is not null)",
            "",
        ),
    ),
    mutant(
        "20",
        "a late sweeper cancels the next generation",
        "sweeps_an_earlier_generation",
        ("cancel_pending", "and o.ending is not null", ""),
    ),
    mutant(
        "20",
        "what waits is not cancelled",
        "cancels",
        (
            "cancel_pending",
            "set state = 'cancelled', finished_at = coalesce($4::timestamptz, clock_timestamp()), epoch = l.epoch + 1",
            "set epoch = l.epoch + 1",
        ),
    ),
    mutant(
        "20",
        "a cancel takes the occurrence at once",
        "cancels",
        (
            "cancel_occurrence",
            "set state = case when o.state = 'expected' then 'skipped' else o.state end",
            "set state = 'skipped'",
        ),
    ),
    mutant(
        "20",
        "the deadline ends nothing",
        "overdue",
        ("stop_overdue", "and o.finish_by < coalesce($3::timestamptz, clock_timestamp())", "and false"),
    ),
    # 21. Running again.
    mutant("21", "a re-run keeps the tries", "reruns", ("reopen_accounts", "attempts = 0, ", "")),
    mutant("21", "a re-run keeps the mark", "peaceful reruns", ("reopen_accounts", "published_at = null, ", "")),
    mutant(
        "21",
        "a re-run opens what succeeded",
        "run again",
        ("reopen_accounts", "l.state in ('failed', 'dead', 'cancelled')", "l.finished_at is not null"),
    ),
    mutant("21", "a re-run keeps the generation", "reruns", ("start_rerun", "generation = o.generation + 1, ", "")),
    mutant(
        "21",
        "a re-run does not look at its neighbours",
        "single",
        ("trigger.operate:_refuse_neighbour", "if other is not None:", "if False:"),
    ),
    mutant(
        "21",
        "a re-run of a fan-out that never ended runs",
        "pages",
        ("start_rerun", "state = case when o.sealed_at is null then 'claimed' else 'running' end", "state = 'running'"),
    ),
    # Pauses, backfills, and what every worker runs for itself.
    mutant(
        "pause",
        "a paused job claims",
        "pauses",
        ("trigger.claim:claim_due", "if paused is not None:", "if False:"),
        (
            "trigger.decide:decide",
            "await reason_of_pause(session, known, claimant.instance, present) is not None",
            "present is None",
        ),
    ),
    mutant(
        "pause",
        "a pause that holds skips",
        "pauses",
        (
            "trigger.claim:claim_due",
            'if known["paused_at"] is not None and known["meanwhile"] == "hold":',
            "if False:",
        ),
        ("due_jobs", "j.paused_at is not null and j.meanwhile = 'hold'", "false"),
    ),
    mutant(
        "pause",
        "a paused job is fired by hand",
        "pauses",
        (
            "trigger.claim:_paused",
            "return None if reason is None else",
            "return None if present else",
        ),
    ),
    mutant(
        "pause",
        "a resume leaves what fell due meanwhile",
        "pauses",
        ("trigger.pauses:resume", 'if before.meanwhile == "skip":', "if False:"),
    ),
    mutant(
        "backfill",
        "a backfill looks for nothing in its way",
        "backfills",
        (
            "trigger.backfill_pass:_has_room",
            'return not waits_for_schedule and await running_of(session, known["name"]) is None',
            "return True",
        ),
    ),
    mutant(
        "backfill",
        "a backfill has no bound",
        "backfills beside",
        ("trigger.backfill_pass:_has_room", 'if backfill["running"] >= backfill["max_active"]:', "if False:"),
    ),
    mutant(
        "backfill",
        "a paused job's backfill goes on",
        "backfills",
        (
            "trigger.backfill_pass:_may_go_on",
            "return await reason_of_pause(session, known, claimant.instance, present) is None",
            "return present is not None",
        ),
        ("backfilling_jobs", "and j.paused_at is null and", "and"),
    ),
    mutant(
        "backfill",
        "a backfill is done while something waits for it",
        "backfills",
        (
            "trigger.backfill_pass:advance_backfill",
            'if not backfill["waiting"] and not backfill["running"]:',
            'if not backfill["running"]:',
        ),
    ),
    mutant(
        "backfill",
        "what a backfill runs costs the schedule its run",
        "backfills",
        (
            "trigger.overlap:without_overlap",
            'match decisions.overlap if is_the_schedules else "queue_one":',
            "match decisions.overlap:",
        ),
    ),
    mutant(
        "every",
        "a worker runs what was due before it started",
        "every worker",
        (
            "worker.every:Own._due",
            "after = max(one for one in (self.started_at, self.done_through) if one is not None)",
            "after = self.done_through or present - timedelta(hours=1)",
        ),
    ),
    mutant(
        "every",
        "what a live worker runs is taken from it",
        "every worker",
        (
            "fail_left",
            "i.stopped_at is not null or i.seen_at < clock.now - $2::interval",
            "i.stopped_at is not null or $2::interval is not null",
        ),
    ),
    mutant(
        "every",
        "nobody ends what a dead worker has left",
        "every worker",
        (
            "fail_left",
            "where i.id is null or i.stopped_at is not null or i.seen_at < clock.now - $2::interval",
            "where i.seen_at < clock.now - $2::interval and false",
        ),
    ),
]
