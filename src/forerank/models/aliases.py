"""Present names of the classes in model files of version 0.1, whose modules have moved since."""

import re
import zipfile
from io import BytesIO

from forerank.models.check import (
    INNER_NAMES,
    MOST_BYTES,
    SCHEMA,
    check_members,
    object_classes,
    open_archive,
    read_member,
)

__all__ = ["with_present_names"]

# Modules of version 0.1 and the classes that model files have of them.
_CLASSES = {
    "forerank.active.ranker": "PoolRanker",
    "forerank.columns": "CategoryColumns NumberColumns TableColumns TextColumn",
    "forerank.estimators.boosted": "RankBoost",
    "forerank.estimators.chosen": "Ranker",
    "forerank.estimators.conjugate": "RankNCG",
    "forerank.estimators.linear": "PairwiseRanker PointwiseRanker",
    "forerank.estimators.network": "RankNet",
    "forerank.estimators.quadratic": "QuadraticFeatures",
    "forerank.estimators.sampled": "ActiveSamplingRanker CombinedSGDRanker Round",
    "forerank.estimators.top": "AATPRanker MAPRanker OWPCRanker PartialAUCRanker SparseTopPush TopPush TopRanker",
    "forerank.solvers.boosting": "Stump",
    "forerank.solvers.result": "Step",
}
_OLD = {(module, name) for module, names in _CLASSES.items() for name in names.split()}
# Classes that have another name now.
_RENAMED: dict[str, str] = {"Step": "Iteration"}
# As skops writes a node: the class, then the module. Within a JSON string the quotes would be
# escaped, so that only nodes match.
_NODE = re.compile(rb'"__class__":(\s*)"(\w+)",(\s*)"__module__":(\s*)"(forerank[\w.]*)"')


def with_present_names(data: bytes) -> bytes:
    """An estimator as skops wrote it, with classes of version 0.1 under their present modules.

    Only the pairs of module and class that version 0.1 wrote are replaced; the result is checked as
    any other file.

    Raises
    ------
    Refused
        Where the archive cannot be read, or is too large.
    """
    homes = {name.rpartition(".")[2]: name.rpartition(".")[0] for name in object_classes()}

    def renamed(node: re.Match[bytes]) -> bytes:
        space, name, comma, colon, module = (part.decode() for part in node.groups())
        if (module, name) in _OLD:
            name = _RENAMED.get(name, name)
            module = homes[name]
        return f'"__class__":{space}"{name}",{comma}"__module__":{colon}"{module}"'.encode()

    with open_archive(BytesIO(data)) as archive:
        check_members(archive, INNER_NAMES, MOST_BYTES)
        if SCHEMA not in archive.namelist():
            return data
        schema = read_member(archive, SCHEMA) or b""
        present = _NODE.sub(renamed, schema)
        if present == schema:
            return data
        target = BytesIO()
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy:
            for name in archive.namelist():
                copy.writestr(
                    name, present if name == SCHEMA else read_member(archive, name) or b""
                )
    return target.getvalue()
