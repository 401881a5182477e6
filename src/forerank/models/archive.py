"""Zip archives of untrusted origin: limits that are checked before anything is decompressed.

The limits are on the number, names, sizes and compression of members, and on the shapes and types
of arrays in numpy's formats. Everything that breaks one raises `Refused`.
"""

import math
import re
import stat
import struct
import zipfile
from io import BytesIO
from typing import BinaryIO

import numpy as np
import scipy.sparse as sp

from forerank.exceptions import Refused

__all__ = [
    "MAX_BYTES",
    "check_array",
    "check_matrix",
    "check_members",
    "open_archive",
    "read_member",
]

# Bytes of all members of an archive together, decompressed: a few kilobytes can decompress to
# gigabytes. A word of a text column takes about 0.9 kB (measured on 5,000 words), so a column with
# its maximum of 100,000 words takes about 90 MB.
MAX_BYTES = 1 << 29
# Bytes of the directory of an archive: 65,535 members with names of twenty characters.
_MAX_DIRECTORY_BYTES = 1 << 23
_MATRIX_MEMBERS = re.compile(r"(indices|indptr|format|shape|data|_is_array)\.npy")
# Kinds of numpy types without pointers: booleans, numbers, strings, dates.
_PLAIN_DTYPES = "biufUSmM"


def open_archive(file: BinaryIO) -> zipfile.ZipFile:
    """The archive in a file; `Refused` if its directory is too long to be read."""
    size = file.seek(0, 2)
    file.seek(max(size - 42, 0))
    tail = file.read(42).rjust(42, b"\0")
    # Model files end without a comment, and without the records of archives of more than 65,535
    # members.
    if tail[20:24] != b"PK\5\6" or tail[40:] != b"\0\0":
        raise Refused("not a forerank model file, or a damaged one")
    (directory_bytes,) = struct.unpack("<I", tail[32:36])
    if tail[:4] == b"PK\6\7" or directory_bytes > _MAX_DIRECTORY_BYTES:
        raise Refused("the archive has more than 65,535 members, the limit for a model file")
    return zipfile.ZipFile(file)


def check_members(archive: zipfile.ZipFile, names: re.Pattern[str], max_bytes: int) -> int:
    """The decompressed size of all members, by the directory; no member is read.

    Refuses members that `names` does not match, links, unusual compression, and an archive of more
    than `max_bytes`.
    """
    seen: set[str] = set()
    for member in archive.infolist():
        name = member.filename
        if name in seen:
            raise Refused(f"the archive has two members with the name {name!r}")
        seen.add(name)
        if not names.fullmatch(name):
            raise Refused(f"the member {name!r} is not allowed in a model file")
        if stat.S_ISLNK(member.external_attr >> 16):
            raise Refused(f"the member {name!r} is a link; only files are allowed in a model file")
        _check_compression(member)
    size = sum(member.file_size for member in archive.infolist())
    if size > max_bytes:
        raise Refused(f"it decompresses to more than {MAX_BYTES >> 20} MB, the limit of a file")
    return size


def _check_compression(member: zipfile.ZipInfo) -> None:
    """Refuse members that cannot be decompressed in pieces.

    Python decompresses bzip2 and lzma in one piece, of any size.
    """
    name = member.filename
    if member.flag_bits & 1:
        raise Refused(f"the member {name!r} is encrypted, which is not allowed in a model file")
    if member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise Refused(
            f"the member {name!r} is compressed by another method than deflate, the one "
            "that a model file may use"
        )


def read_member(archive: zipfile.ZipFile, name: str, max_bytes: int = MAX_BYTES) -> bytes | None:
    """A member, or None if it has more than `max_bytes`; not more than these are decompressed."""
    member = archive.getinfo(name)
    _check_compression(member)
    with archive.open(member) as file:
        data = file.read(max_bytes + 1)
    return None if len(data) > max_bytes else data


def check_array(data: bytes) -> None:
    """Refuse an array in numpy's format that holds objects or is not as long as its header says."""
    file = BytesIO(data)
    readers = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }
    version = np.lib.format.read_magic(file)
    if version not in readers:
        raise Refused(f"an array in version {version} of numpy's format; 1.0 and 2.0 are read")
    shape, _, dtype = readers[version](file)
    if dtype.hasobject:
        raise Refused("an array of Python objects, which could run code")
    if dtype.kind not in _PLAIN_DTYPES or min(shape, default=0) < 0:
        raise Refused(f"an array of {dtype}, which is not allowed in a model file")
    size = math.prod(shape)
    if size * dtype.itemsize != len(data) - file.tell() or (size and not dtype.itemsize):
        raise Refused("an array that is not as long as its header says")


def check_matrix(data: bytes, max_bytes: int) -> int:
    """The decompressed size of a sparse matrix in scipy's format.

    Refuses one with indices outside of its shape, where compiled code would read.
    """
    with open_archive(BytesIO(data)) as archive:
        size = check_members(archive, _MATRIX_MEMBERS, max_bytes)
        for name in archive.namelist():
            check_array(read_member(archive, name) or b"")
    matrix = sp.load_npz(BytesIO(data))
    if matrix.format != "csr":
        raise Refused(f"a sparse matrix in the format {matrix.format}; csr is expected")
    matrix.check_format(full_check=True)
    return size
