"""What ops_test.py calls every op with: op name -> the cases that a generator yields.

A case is one call: inputs in the order of the op's arguments (numpy arrays; lists of them for list arguments; Ref(array)
for a variable that holds it), and attributes. Invalid ones are marked, so that a table that tests nothing is noticed.
"""
from . import arranged, audio, batches, columns, elementwise, images, neural, parts, pipelines, ragged, records, recurrent, sets, sparse, special, state, stateless, strings  # noqa: F401  fill CASES
from . import regressions  # noqa: F401  adds to CASES
from . import complex_numbers  # noqa: F401  adds to CASES
from .case import CASES, Ref, bf16  # noqa: F401
