"""What networks call: `/_networks/{name}/…`."""
