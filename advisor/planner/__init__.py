"""Memory arithmetic for language models: will it fit, and on what?

Pure functions over the catalogue:

- `plan(Request(model=..., task=...))` answers with parts, total and cards, or raises PlanError;
- `weights_bytes(model, "awq")` and `kv_bytes_per_token(model, "fp8")` answer the two questions
  that sizing asks most.
"""

from advisor.planner.data import PlanError, constants, engines, quant, quants, recipes
from advisor.planner.documents import Claim
from advisor.planner.fit import Fit
from advisor.planner.kv_cache import kv_bytes_per_token, sequence_bytes
from advisor.planner.need import PARTS, Need, Part
from advisor.planner.plan import Plan, plan
from advisor.planner.request import TASKS, Request, Task
from advisor.planner.weights import (
    tensor_parallel_counts,
    tensor_parallel_refusal,
    weights_bytes,
)

__all__ = [
    "PARTS",
    "TASKS",
    "Claim",
    "Fit",
    "Need",
    "Part",
    "Plan",
    "PlanError",
    "Request",
    "Task",
    "constants",
    "engines",
    "kv_bytes_per_token",
    "plan",
    "quant",
    "quants",
    "recipes",
    "sequence_bytes",
    "tensor_parallel_counts",
    "tensor_parallel_refusal",
    "weights_bytes",
]
