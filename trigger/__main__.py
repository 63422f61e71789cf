"""The trigger's command line: `python -m trigger serve`, and everything that an operator does."""

import os
import signal

if __name__ == "__main__":
    # The first process of a container ignores a signal that it has no handler for: without this, a SIGTERM during the
    # imports would be lost, and the service would run until it is killed.
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    from trigger.command import main

    main()
