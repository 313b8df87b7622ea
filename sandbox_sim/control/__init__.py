"""What users do with the gateway: search, clock, snapshots, seeding, and running jobs."""
