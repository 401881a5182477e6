"""An ONNX graph under construction."""

from typing import Any

import numpy as np

__all__ = ["Graph"]


class Graph:
    """Inputs, constants, nodes and outputs of a graph."""

    def __init__(self) -> None:
        self.inputs: list[Any] = []
        self.constants: list[Any] = []
        self.nodes: list[Any] = []
        self.outputs: list[Any] = []

    def input(self, name: str, kind: str = "DOUBLE", width: int = 1) -> str:
        if name not in [each.name for each in self.inputs]:  # two parts of a score may share it
            self.inputs.append(self._value(name, kind, width))
        return name

    def output(self, kind: str, inputs: list[str], name: str) -> None:
        self.add(kind, inputs, name)
        self.outputs.append(self._value(name, "DOUBLE", 1))

    def _value(self, name: str, kind: str, width: int) -> Any:
        from onnx import TensorProto, helper

        return helper.make_tensor_value_info(name, getattr(TensorProto, kind), [None, width])

    def constant(self, values: Any, dtype: Any = np.float64) -> str:
        from onnx import numpy_helper

        name = f"forerank/constant/{len(self.constants)}"
        self.constants.append(numpy_helper.from_array(np.asarray(values, dtype=dtype), name))
        return name

    def add(self, kind: str, inputs: list[str], out: str | None = None, **attributes: Any) -> str:
        from onnx import helper

        name = out or f"forerank/value/{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def cast(self, name: str) -> str:
        """Booleans as doubles."""
        from onnx import TensorProto

        return self.add("Cast", [name], to=TensorProto.DOUBLE)

    def centred(self, name: str, fill: Any, mean: Any) -> str:
        """Values minus their mean, with `fill` for values that are not finite."""
        zero = self.add("Sub", [name, name])  # NaN for NaN and for infinite values
        filled = self.add("Where", [self.add("IsNaN", [zero]), self.constant(fill), name])
        return self.add("Sub", [filled, self.constant(mean)])
