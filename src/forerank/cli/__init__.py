"""The command-line program: the application, shared options and output, a file per command."""
