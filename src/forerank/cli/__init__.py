"""The command-line program: one file per command."""
