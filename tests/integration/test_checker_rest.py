"""Coming to rest: what a worker had fetched and put back as it drained is taken up before anything is judged."""

from pathlib import Path

import aio_pika
import pytest

from schemas.message import WorkMessage, encode
from shared import clock
from shared.postgres import Session
from tests.support.checker import check
from tests.support.checker_deployment import shut_down, take_up
from tests.support.nights import assert_night
from tests.support.processes import deployment

pytestmark = pytest.mark.timeout(180)

JOBS = "jobs = [nightly('night', PerAccount(effect))]\n"


async def test_a_copy_of_a_settled_row_that_was_put_back_is_taken_up(
    tmp_path: Path, database_url: str, broker_url: str, prefix: str, session: Session
) -> None:
    async with deployment(tmp_path, database_url, broker_url, prefix) as deployed:
        deployed.declare(JOBS)
        await deployed.deploy(5)
        deployed.start("trigger")
        worker = deployed.start("worker")
        row = await assert_night(session, deployed, "night", 5)
        assert await shut_down(session, deployed) == []
        copy = WorkMessage(
            job="night",
            occurrence_id=row["id"],
            scheduled_at=row["scheduled_at"],
            accounts=("a000003",),
            generation=1,
            published_at=clock.utc_now(),
        )
        async with await aio_pika.connect(broker_url) as connection, connection.channel() as channel:
            work = f"{deployed.prefix}.work.night"
            await channel.default_exchange.publish(aio_pika.Message(encode(copy)), work)
        left = await check(session, broker_url)
        assert [(one.rule, one.row) for one in left] == [("message left", work)]
        assert await take_up(session, deployed, worker) == []
        assert await check(session, broker_url) == []
