"""`make chaos ARGS="--production"`: kills a production server while payments go to a network.

The network is a second sandbox_sim, which the adapter `upstream` forwards to, or with
`--network mtn_momo` a fake MTN MoMo server. Its own count is the judge: each payment must end as
the network says, and be charged there once.
"""
