"""HTTP connections, requests and answers, independent of what the requests mean."""
