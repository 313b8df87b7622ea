"""The commands, one module each; `cli` imports one when it is called."""
