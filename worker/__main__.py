"""The worker's command line: `python -m worker serve`, and `try` to run one account by hand."""

from worker.command import main

if __name__ == "__main__":
    main()
