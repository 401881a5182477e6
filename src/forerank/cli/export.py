"""`forerank export`: the scoring function of a model as an ONNX file."""

from pathlib import Path
from typing import Annotated

from typer import Option

from forerank.cli import options, output

EPILOG = options.examples("forerank export bank.forerank -o bank.onnx")


def export(
    model: options.ModelFile,
    out: Annotated[Path, Option("--out", "-o", help="The ONNX file to write.")],
    *,
    force: options.Force = False,
    as_json: options.AsJson = False,
    quiet: options.Quiet = False,
) -> None:
    """Write the scoring function of a model as ONNX, and check that it gives the same scores."""
    from forerank.models import load_model
    from forerank.models.onnx import save_onnx

    with output.status(quiet) as say:
        say("converting")
        difference = save_onnx(load_model(model), out, force=force)
    if as_json:
        output.print_json({"out": str(out), "largest_difference": difference})
    elif not quiet:
        output.print_lines(f"saved {out}; scores agree to {difference:.1e}")
