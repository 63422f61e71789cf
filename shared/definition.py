"""A job's declaration as the database keeps it: plain JSON, and a fingerprint that tells two declarations apart."""

import hashlib
from collections.abc import Mapping
from typing import Any

import orjson

from shared.decisions import Decisions
from shared.job import Job, Outside, PerAccount
from shared.job_faults import function_name
from shared.runs_elsewhere import NotHere

Definition = dict[str, Any]


def definition_of(job: Job) -> Definition:
    """Give a job's declaration as JSON-able values; durations are seconds."""
    backoff = job.backoff
    # What a job does not use is left out, so that a release that brings it is no change of the job's definition.
    jitter = {"jitter": job.jitter.total_seconds()} if job.jitter else {}
    region = {"region": job.region, "region_delay": job.region_delay.total_seconds()} if job.region else {}
    definition: Definition = {
        "schedule": job.schedule.definition(),
        "decisions": _decisions(job.decisions),
        "handler": _handler(job),
        "queue": job.queue if job.has_messages else None,
        "max_tries": job.max_tries,
        "backoff": {
            "first": backoff.first.total_seconds(),
            "factor": backoff.factor,
            "limit": backoff.limit.total_seconds(),
            "jitter": backoff.jitter,
        },
        "partial_ok": job.partial_ok,
        "on_finish_within": job.on_finish_within,
        "coordination": job.coordination,
        **region,
        "description": job.description,
        **jitter,
    }
    # Left out where it isn't asked for, so that a definition from before it was known keeps its fingerprint.
    if job.pause_after_failures is not None:
        definition["pause_after_failures"] = job.pause_after_failures
    return definition


def fingerprint(definition: Definition) -> str:
    """Give SHA-256 over the definition's canonical JSON, as hexadecimal digits."""
    return hashlib.sha256(orjson.dumps(definition, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _decisions(decisions: Decisions) -> Definition:
    """Give the decisions; what is not decided is left out, so that what an earlier release has kept stays the same."""
    told: Definition = {
        "catch_up": decisions.catch_up,
        "catch_up_within": decisions.catch_up_within.total_seconds(),
        "overlap": decisions.overlap,
        "start_within": decisions.start_within.total_seconds(),
        "finish_within": decisions.finish_within.total_seconds(),
    }
    if decisions.catch_up_at_most is not None and decisions.catch_up_pace is not None:
        told["catch_up_at_most"] = decisions.catch_up_at_most
        told["catch_up_pace"] = decisions.catch_up_pace.total_seconds()
    if decisions.overlap_by != "job":
        told["overlap_by"] = decisions.overlap_by
    if decisions.no_progress_within is not None:
        told["no_progress_within"] = decisions.no_progress_within.total_seconds()
    return told


def fingerprints(jobs: Mapping[str, Job]) -> dict[str, str]:
    """Give the fingerprint of each job's declaration, by its name."""
    return {name: fingerprint(definition_of(job)) for name, job in jobs.items()}


def _handler(job: Job) -> Definition:
    handler = job.handler
    if isinstance(handler, NotHere):
        return {"mode": type(handler).__name__}
    told: Definition = {
        "mode": type(handler).__name__,
        "function": handler_name(job),
        "timeout": handler.timeout.total_seconds(),
        "concurrency": handler.concurrency,
        "chunk_size": handler.chunk_size,
        "role": handler.role,
    }
    if handler.login is not None:
        told["login"] = handler.login
    if isinstance(handler, Outside):
        told["key_valid_for"] = handler.key_valid_for.total_seconds()
    if isinstance(handler, PerAccount):
        told["settle"] = handler.settle
    return told


def handler_name(job: Job) -> str:
    """Give the handler as ``module:function``, whichever way it was declared."""
    function = job.handler.handler
    if isinstance(function, str):
        return function
    return function_name(function)
