"""Displays: results that people look at, drawn with matplotlib."""
