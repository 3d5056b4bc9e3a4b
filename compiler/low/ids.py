"""Row numbers of the low tables, each with a type of its own."""

from typing import NewType

BufferId = NewType("BufferId", int)
"""Row of ``Buffers``."""

SequenceId = NewType("SequenceId", int)
"""Row of ``Sequences``."""

ViewId = NewType("ViewId", int)
"""Row of ``Views``."""

CallId = NewType("CallId", int)
"""Row of ``Calls``."""

CopyId = NewType("CopyId", int)
"""Row of ``Copies``."""

TransferId = NewType("TransferId", int)
"""Row of ``Transfers``."""

StepId = NewType("StepId", int)
"""Number of a step: steps are numbered in program order, a Repeat before its body."""

ValueId = NewType("ValueId", int)
"""Row of ``values``: tensors of the host."""

NodeId = NewType("NodeId", int)
"""Row of ``nodes``: graph nodes that rows exist for."""

NO_ROW = -1
"""In a column of row numbers: none."""

NO_SEQUENCE = SequenceId(NO_ROW)
NO_VALUE = ValueId(NO_ROW)
