"""Versions of Python and of packages, as they are written into model files, records and reports."""

import platform
from importlib.metadata import PackageNotFoundError, version

import forerank

__all__ = ["package_versions"]


def package_versions(*names: str) -> dict[str, str]:
    """Versions by name, in the order given; packages that are not installed are omitted.

    Examples
    --------
    >>> list(package_versions("numpy", "no-such-package", "python"))
    ['numpy', 'python']
    """
    versions = {"forerank": forerank.__version__, "python": platform.python_version()}
    for name in set(names) - set(versions):
        try:
            versions[name] = version(name)
        except PackageNotFoundError:
            continue
    return {name: versions[name] for name in names if name in versions}
