"""A job's declaration as the database keeps it: plain JSON, and a fingerprint that tells two declarations apart."""

import hashlib
from typing import Any

import orjson

from shared.job import Job, Outside, PerAccount
from shared.job_faults import function_name

Definition = dict[str, Any]


def definition_of(job: Job) -> Definition:
    """Give a job's declaration as JSON-able values; durations are seconds."""
    decisions, backoff = job.decisions, job.backoff
    return {
        "schedule": job.schedule.definition(),
        "decisions": {
            "catch_up": decisions.catch_up,
            "catch_up_within": decisions.catch_up_within.total_seconds(),
            "overlap": decisions.overlap,
            "start_within": decisions.start_within.total_seconds(),
            "finish_within": decisions.finish_within.total_seconds(),
        },
        "handler": _handler(job),
        "queue": job.queue,
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
        "description": job.description,
    }


def fingerprint(definition: Definition) -> str:
    """Give SHA-256 over the definition's canonical JSON, as hexadecimal digits."""
    return hashlib.sha256(orjson.dumps(definition, option=orjson.OPT_SORT_KEYS)).hexdigest()


def _handler(job: Job) -> Definition:
    handler = job.handler
    told: Definition = {
        "mode": type(handler).__name__,
        "function": handler_name(job),
        "timeout": handler.timeout.total_seconds(),
        "concurrency": handler.concurrency,
        "chunk_size": handler.chunk_size,
        "role": handler.role,
    }
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
