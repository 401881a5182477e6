"""Aliases of classes: files of version 0.1 name modules that have moved since."""

import re
import zipfile
from io import BytesIO

from forerank.models.archive import MAX_BYTES, check_members, open_archive, read_member
from forerank.models.safety import ESTIMATOR_MEMBERS, SCHEMA, allowed_classes

__all__ = ["with_current_names"]

# Modules of version 0.1, and their classes that model files contain.
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
    "forerank.estimators.top": "AATPRanker MAPRanker OWPCRanker PartialAUCRanker SparseTopPush "
    "TopPush TopRanker",
    "forerank.solvers.boosting": "Stump",
    "forerank.solvers.result": "Step",
}
_OLD = {(module, name) for module, names in _CLASSES.items() for name in names.split()}
# Old class names to current ones, for classes that were renamed as well.
_RENAMED: dict[str, str] = {"Step": "Iteration"}
# A node as skops writes it: the class, then the module. Inside a JSON string the quotes would be
# escaped, so only nodes match.
_NODE = re.compile(rb'"__class__":(\s*)"(\w+)",(\s*)"__module__":(\s*)"(forerank[\w.]*)"')


def with_current_names(data: bytes) -> bytes:
    """An estimator as skops wrote it, with the current modules of classes of version 0.1.

    Only pairs of module and class that version 0.1 wrote are replaced; the result is checked like
    every other file.

    Raises
    ------
    Refused
        If the archive cannot be read or is too large.
    """
    with open_archive(BytesIO(data)) as archive:
        check_members(archive, ESTIMATOR_MEMBERS, MAX_BYTES)
        if SCHEMA not in archive.namelist():
            return data
        schema = read_member(archive, SCHEMA) or b""
        current = _NODE.sub(_renamed, schema)
        if current == schema:
            return data
        target = BytesIO()
        with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy:
            for name in archive.namelist():
                member = current if name == SCHEMA else read_member(archive, name) or b""
                copy.writestr(name, member)
    return target.getvalue()


def _renamed(node: re.Match[bytes]) -> bytes:
    space, name, comma, colon, module = (part.decode() for part in node.groups())
    if (module, name) in _OLD:
        modules = {home.rpartition(".")[2]: home.rpartition(".")[0] for home in allowed_classes()}
        name = _RENAMED.get(name, name)
        module = modules[name]
    return f'"__class__":{space}"{name}",{comma}"__module__":{colon}"{module}"'.encode()
