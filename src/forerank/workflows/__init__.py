"""Fit, evaluate, rank, compare and report: each is one public function that a command calls."""
