"""A build gives the same bytes, whatever the store does and wherever it runs."""

import os
import shutil
from pathlib import Path

import pytest

from compiler.compile import Results, build
from compiler.config import BuildOptions
from compiler.errors import DoesNotFit
from compiler.fingerprint import REPOSITORY
from compiler.store.layout import Mode
from compiler.store.result import Status
from tests.stages.builds import SMALL, TOO_LARGE, build_in_process, opened, outcomes

INHERITED = {name: os.environ[name] for name in ("PATH", "HOME", "XDG_CACHE_HOME") if name in os.environ}


def test_disabled_cold_and_warm_caches_give_equal_bytes(warm: tuple[Path, Results]) -> None:
    """CA-06, and of every stage, those inside of others included."""
    root, cold = warm
    assert {result.status for result in cold.values()} == {Status.COMPUTED}
    with opened(root) as store:
        again = build(store, SMALL, BuildOptions())
    with opened(root, mode=Mode.OFF) as store:
        disabled = build(store, SMALL, BuildOptions())
    assert {result.status for result in again.values()} == {Status.HIT}
    assert {result.status for result in disabled.values()} == {Status.BYPASSED}
    assert outcomes(cold) == outcomes(again) == outcomes(disabled)
    assert len(outcomes(cold)) == 8 + 4 + 4


def test_verifying_a_warm_store_finds_no_difference(warm: tuple[Path, Results]) -> None:
    """Every stage is computed again; a strict store raises at the first byte that differs."""
    root, cold = warm
    with opened(root, mode=Mode.VERIFY) as store:
        verified = build(store, SMALL, BuildOptions())
        assert not store.statistics.events
    assert outcomes(verified) == outcomes(cold)


def test_hash_seed_and_workers_change_nothing(warm: tuple[Path, Results], tmp_path: Path) -> None:
    for seed, workers in (("1", 1), ("2", 2)):
        found, _ = build_in_process(
            REPOSITORY.root,
            tmp_path / "none",
            mode="OFF",
            workers=workers,
            environment={**INHERITED, "PYTHONHASHSEED": seed},
        )
        assert found == outcomes(warm[1])
    assert not (tmp_path / "none").exists()


def test_workers_enter_no_key(warm: tuple[Path, Results]) -> None:
    with opened(warm[0]) as store:
        results = build(store, SMALL, BuildOptions(workers=2))
    assert all(result.hit for result in results.values())


def test_an_edit_that_changes_no_byte_stops_where_it_was_made(tmp_path: Path) -> None:
    """Early cutoff: new rows are equal, so what takes them is not computed for their sake.

    ``final_placement`` runs again, since its record lists rows that no stage of today gave. ``emission``
    lists the same rows (provisional and final addresses agree in so small a model) and finds them, equal.
    """
    source = tmp_path / "source"
    shutil.copytree(REPOSITORY.root / "compiler", source / "compiler")
    first, computed = build_in_process(source, tmp_path / "store", environment=INHERITED)
    assert len(computed) == 12
    encoder = source / "compiler" / "exchange" / "rows.py"
    encoder.write_text(encoder.read_text() + "\n_ADDED = 1\n")
    second, computed = build_in_process(source, tmp_path / "store", environment=INHERITED)
    assert second == first
    assert computed == ["exchange.rows", "final_placement"]


def test_a_failure_is_kept_and_stops_what_stands_behind(tmp_path: Path) -> None:
    """The error says the same each time, and the reused one costs no search."""
    texts: list[str] = []
    said: list[str] = []
    for _ in range(2):
        with opened(tmp_path / "store") as store:
            with pytest.raises(DoesNotFit) as raised:
                build(store, TOO_LARGE, BuildOptions(), report=lambda name, _: said.append(name))
            computed = {stage for (_, stage), counts in store.statistics.counts.items() if counts.misses}
        texts.append(str(raised.value))
        assert computed == (
            {"expansion", "final_placement", "provisional_placement"} if len(texts) == 1 else set()
        )
    assert said == ["expansion", "expansion"]
    assert texts[0] == texts[1]
    assert "limit 588,064" in texts[0]
