"""What users set while the server runs: outcomes of requests, failures, and its behaviour."""
