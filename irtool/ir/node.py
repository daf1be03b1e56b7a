"""Where nodes and their parts stood before: see ``irtool.ir.graph`` and ``irtool.ir.statement``."""

from irtool.ir.graph import Node as Node
from irtool.ir.statement import STANDARD_STYLE as STANDARD_STYLE
from irtool.ir.statement import ClosureSet as ClosureSet
from irtool.ir.statement import ClosureTarget as ClosureTarget
from irtool.ir.statement import GraphTarget as GraphTarget
from irtool.ir.statement import PrimitiveTarget as PrimitiveTarget
from irtool.ir.statement import StatementStyle as StatementStyle
from irtool.ir.statement import Target as Target
from irtool.ir.statement import ValueTarget as ValueTarget
from irtool.ir.statement import nested_references as nested_references
from irtool.ir.statement import operator_name as operator_name
