"""Settings of all tests: examples of hypothesis are the same in every run, without a time limit."""

from hypothesis import settings

settings.register_profile("forerank", deadline=None, derandomize=True)
settings.load_profile("forerank")
