"""What a well-formed low program is, and all faults of one that is not.

References come first; when a reference, a step number or a Repeat is wrong, nothing else can be asked and
nothing else is reported. The rules, by the name of the fault:

- *reference*: columns of a table are equally long; row numbers exist; a call's views and a transfer's
  recipients are where they say, and recipients are listed transfer after transfer.
- *step number*: steps are numbered 0, 1, ... in program order, a Repeat before its body.
- *repeat*: a Repeat runs a body of at least one step at least once, and holds no Repeat (AL-09: the form
  could, no later stage can yet).
- *buffer*: at least one byte, alignment a power of two, no negative tail, a known role.
- *sharing*: a root is its own root at displacement 0. What shares its storage is on its tile, has at least
  one byte in common with it, and is aligned and interleaved whenever the root is where it says. A cleared
  buffer is a temporary that shares with none and is in no sequence (AL-02).
- *sequence*: members are roots that nothing shares, numbered 0, 1, ..., of one tile, size, alignment, class
  and tail; the first is the one the sequence names; what is in none has no number.
- *separation*: a pair names two buffers of one tile that share no storage, and every pair that a binding
  wants is listed, in every iteration (RP-01); so is what a tile sends and receives itself in one transfer.
- *host value*: each shard of a tensor of the host is a buffer of the value's role and the shard's size, up to
  the end of its last word, on the tile of each of its owners (EC-02); only such buffers have a value, a shard
  or a role. Tensors of one role differ in name.
- *step kind*: calls and copies are in compute steps, transfers in exchange steps.
- *tile*: a call's and a copy's operands are on its tile.
- *iteration*: an operand with a sequence names the first member, inside a Repeat with as many iterations as
  the sequence has members.
- *binding*: a binding is what its family answers to the request that it records.
- *form*: a view has the geometry that the call was bound to, at the origin it was bound to (LC-09, LC-10,
  LC-12).
- *range*: no size or displacement is beyond any memory (16 MiB); what a call, copy or transfer touches lies
  in the buffer, and what it may over-read in buffer and tail.
- *alignment*: an access is aligned as its binding wants wherever its buffer lies; exchanged bytes at words.
- *memory class*: an access that needs interleaved memory is to an interleaved buffer.
- *overlap*: a result has bytes in common with another access of its call only where the binding's aliases say
  so, and lies where they say.
- *copy*: the columns of a copy and its binding name the same bytes.
- *words*: a transfer is of whole words, at least one.
- *recipients*: a transfer has recipients, on distinct tiles, in ascending order, the sender's never alone:
  the fabric would deliver nothing.
- *resident*: nothing writes to the storage of a parameter.
- *delivery*: in an exchange step no byte is delivered twice, nor delivered over what the same transfer sends.
  (Where one transfer sends what another delivers, or is delivered over what another sends, row order gives it
  a meaning: the dependent one starts after the earlier one's payload. Two deliveries to one byte would have a
  meaning too, and no use.)
- *undefined*: a call needs only bytes that were written before in the same run, are a parameter's or an
  input's, or belong to a cleared buffer and are never written; and every element of an output is written.
  Exactly, byte by byte and iteration by iteration. A transfer sends written bytes alone, padding included,
  and a copy writes none back that nothing wrote, beside its own in a word: neither is told apart from using
  them. A copy inside of a tile that moves such bytes moves what is known of them.
- *precision*: what a call needs was written in the precision in which it is read, or is zero (MS-01, MS-06).
- *padding*: padding that a call wants to be zero is: filled with zeros, left at zero by a kernel, written by
  the host, or cleared when the program is loaded, and nothing else since.

Not looked at: where anything is placed (``compiler.placement.check``), whether values are right, and whether
elements are finite where a call wants finite padding (``compiler.low.execute`` sees both). Rows of one tile
in one compute step run in order, so that they cannot be in conflict.

No code is shared with the builder. Cost: columns at once, but for *undefined* and what follows it, which
visit each row in each iteration with a list of spans for each buffer.
"""

from compiler.low.faults import Fault
from compiler.low.ir import LowProgram
from compiler.low.verify_calls import call_faults
from compiler.low.verify_flow import flow_faults
from compiler.low.verify_structure import structure_faults
from compiler.low.verify_tables import table_faults


def verify(program: LowProgram) -> tuple[Fault, ...]:
    """All faults of a program; none when it is well formed."""
    structure = structure_faults(program)
    if structure:
        return structure
    rows = (*table_faults(program), *call_faults(program))
    # Bytes can only be followed where every row names bytes that exist.
    return rows or flow_faults(program)
