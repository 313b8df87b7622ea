"""The faces over HTTP: the gateway's twelve operations, and what is ours under `/_sandbox/`."""
