# `python tests/recording` is a program: pytest looks for neither tests nor doctests in its files.
collect_ignore_glob = ["*.py"]
