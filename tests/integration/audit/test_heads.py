"""The chain's head goes to webhook channels that ask for it, and is what an anchor takes."""

import base64
import hmac

import pytest

from shared.webhook_signing import signed_content
from tests.integration.audit.trail import append, head, seal_all
from tests.support.fleet import prepared_for
from tests.support.ledger import database_on, session_on
from tests.support.receivers import answering, http_receiver
from trigger.audit_anchor import read_anchors
from trigger.tell_heads import Heads
from trigger.verify_audit import verify

KEY = "whsec_" + base64.b64encode(b"k" * 32).decode()
CHANNELS = f"""
[channels.keeper]
kind = "webhook"
url = "URL"
keys = ["{KEY}"]
audit = true
[channels.other]
kind = "webhook"
url = "URL"
keys = ["{KEY}"]
"""


@pytest.mark.parametrize("refusals", [0, 1])
async def test_the_newest_head_is_told_once_to_who_asks_also_after_a_refusal(database_url: str, refusals: int) -> None:
    with http_receiver() as receiver:
        channels = CHANNELS.replace("URL", receiver.url("/heads"))
        prepared = prepared_for("trigger", [], database_url, "amqp://guest:guest@localhost/", "test", channels=channels)
        async with database_on(database_url) as database, session_on(database_url) as session:
            heads = Heads(prepared, database)
            assert await heads.tell_pass() == 0, "nothing is sealed"
            await append(session, "one", "two")
            await seal_all(session, at_most=1)
            if refusals:
                receiver.answer = answering(500)
                assert await heads.tell_pass() == 0
                await append(session, "three")
                await seal_all(session)
                receiver.answer = None
            assert await heads.tell_pass() == 1
            assert await heads.tell_pass() == 0
            last = await head(session)
            assert len(receiver.requests) == 1 + refusals
            told = receiver.requests[-1]
            assert told.json["type"] == "audit.sealed"
            data = told.json["data"]
            assert data == {
                "environment": "test",
                "position": last["position"],
                "hash": last["hash"].hex(),
                "anchor": f"{last['hash'].hex()}@{last['position']}",
            }
            content = signed_content(told.headers["webhook-id"], int(told.headers["webhook-timestamp"]), told.body)
            expected = base64.b64encode(hmac.digest(b"k" * 32, content, "sha256")).decode()
            assert told.headers["webhook-signature"] == f"v1,{expected}"
            assert (await verify(session, read_anchors(data["anchor"]))).found == 0
            another = Heads(
                prepared_for("trigger", [], database_url, "amqp://localhost/", "test", channels=channels), database
            )
            assert await another.tell_pass() == 0, "one trigger at a time tells"
