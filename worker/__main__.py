"""The worker's command line: `python -m worker serve`, and `try` to run one account by hand."""

import os
import signal

if __name__ == "__main__":
    # The first process of a container ignores a signal that it has no handler for: without this, a SIGTERM during the
    # imports would be lost, and the service would run until it is killed.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    from worker.command import main

    main()
