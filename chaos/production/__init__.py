"""`make chaos ARGS="--production"`: kills a production server while payments go to a network.

The network is a second sandbox_sim, which the adapter `upstream` forwards to. Its own journal and
its own records are the judges: each payment must end as they say, and be charged there once.
"""
