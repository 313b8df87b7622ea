"""The benchmark: speed as a ratio to a bare aiohttp handler measured in the same run."""
