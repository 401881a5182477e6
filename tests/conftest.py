"""Settings of all tests: examples of hypothesis are the same in every run, without a time limit."""

try:
    from hypothesis import settings
except ImportError:  # on a machine with a GPU, where tests/tensors runs without it
    pass
else:
    settings.register_profile("forerank", deadline=None, derandomize=True)
    settings.load_profile("forerank")
