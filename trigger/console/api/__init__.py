"""The JSON beneath the pages: the same values as `--json` of the commands, under `/api/v1`, and their description."""
