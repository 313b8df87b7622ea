"""What sandbox_sim costs, as ratios to a bare aiohttp handler measured in the same run."""
