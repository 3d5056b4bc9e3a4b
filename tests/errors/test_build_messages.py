"""What the stages of a build say when a check of theirs fails: exact text."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from assets.recall import recalled
from compiler.compile import run_stage, stage_of
from compiler.config import BuildOptions
from compiler.errors import InternalError, StoreError
from compiler.low.ir import LowProgram
from compiler.models.skeleton import SkeletonOptions, skeleton
from compiler.models.stage_program import written
from compiler.placement.ir import Placement
from compiler.placement.place import Placed
from compiler.store.result import StageResult
from tests.stages.builds import SMALL, opened


def test_a_program_that_breaks_its_rules(monkeypatch: pytest.MonkeyPatch) -> None:
    program = skeleton(SkeletonOptions())

    def without_a_byte(_: SkeletonOptions) -> LowProgram:
        return replace(
            program,
            transfers=replace(program.transfers, byte_count=program.transfers.byte_count - 1),
        )

    monkeypatch.setattr("compiler.models.stage_program.skeleton", without_a_byte)
    with pytest.raises(InternalError) as refused:
        written(SkeletonOptions(), None)
    assert str(refused.value) == (
        "internal error, please report it (expansion): low program: the program breaks its rules: "
        "transfers 0: words: 127 bytes are not whole words; "
        "transfers 1: words: 383 bytes are not whole words; "
        "transfers 2: words: 383 bytes are not whole words; and 2 more.\n"
        "  graph nodes: skeleton\n"
        "  next: report the model and the options"
    )


def test_a_placement_that_breaks_its_rules(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def all_at_one_place(program: LowProgram, _: object) -> Placed:
        placement = Placement(
            address=np.full(len(program.buffers.tile), 0x80000, dtype=np.int64),
            stride=np.full(len(program.sequences.first), 1024, dtype=np.int64),
        )
        return Placed(placement=placement, classes=1, tiles=1)

    monkeypatch.setattr("compiler.evaluation.stage_final_placement.place_counted", all_at_one_place)
    with opened(tmp_path / "store") as store:
        done: dict[str, StageResult[Any]] = {}
        for name in ("expansion", "kernel_objects", "provisional_placement", "support_sizing"):
            done[name] = run_stage(name, store, SMALL, BuildOptions(), done)
        with pytest.raises(InternalError) as refused:
            run_stage("final_placement", store, SMALL, BuildOptions(), done)
    assert str(refused.value) == (
        "internal error, please report it (placement check): final placement: "
        "the placement breaks its rules: "
        "tile 0: sequence: buffer 2 is at 0x80000; tile 1: sequence: buffer 5 is at 0x80000; "
        "tile 2: sequence: buffer 7 is at 0x80000; and 59 more.\n"
        "  graph nodes: skeleton\n"
        "  next: report the model and the options"
    )


def test_a_result_that_is_lost_after_it_was_materialized(tmp_path: Path) -> None:
    with opened(tmp_path / "store") as store:
        expansion = run_stage("expansion", store, SMALL, BuildOptions(), {})
        again = recalled(store, stage_of("expansion", SMALL), expansion.key)
        assert again is not None
        for output in expansion.record.outputs:
            store.objects.path(output.ref.digest).unlink()
        with pytest.raises(StoreError) as lost:
            again.value()
        assert recalled(store, stage_of("expansion", SMALL), expansion.key) is None
    assert str(lost.value) == (
        f"store (store): {tmp_path}/store: output program of stage expansion was lost after it was "
        "materialized.\n  next: materialize expansion again"
    )
