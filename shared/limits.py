"""Times that several parts of the product have to agree on."""

from datetime import timedelta
from typing import Final

# RabbitMQ takes a message back from a consumer that has not acknowledged it for so long, unless it is set otherwise.
ACK_TIMEOUT: Final = timedelta(minutes=30)
LONGEST_TIMEOUT: Final = timedelta(minutes=20)
# After so long a chunk begins no further account; what is left of it is published again, alone.
CHUNK_BUDGET: Final = timedelta(minutes=5)
# Each process gives a sign of life so often.
BEAT_INTERVAL: Final = timedelta(seconds=5)
# By how much a process's clock may differ from the database's; an answer that took longer measures nothing.
CLOCK_SKEW_SECONDS: Final = 5.0
