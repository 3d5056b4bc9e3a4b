"""Graphs in the store: what comes back, what its digest is, and what no graph comes of."""

import dataclasses
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from compiler.fingerprint import REPOSITORY, Sources
from compiler.graph.codec import LABELS, STORED_GRAPH, STRUCTURE, StoredGraph, stored, structure_of_plain
from compiler.graph.digest import graph_digest, plain_structure
from compiler.graph.ir import Graph
from compiler.graph.order import in_definition_order
from compiler.graph.parser import parse_graph
from compiler.graph.text import text_of_graph
from compiler.graph.verify import verify
from compiler.models.registry import MODELS
from compiler.store.digest import digest_of
from compiler.store.store import Store
from tests.graph.sample_stage import SAMPLE, Source
from tests.graph.strategies import graphs


def _bytes(graph: Graph) -> dict[str, bytes]:
    return dict(STORED_GRAPH.split(stored(graph)))


@given(graphs())
def test_a_graph_comes_back_whole(graph: Graph) -> None:
    kept = _bytes(graph)
    back = STORED_GRAPH.join(kept.__getitem__)
    assert back == stored(graph)
    assert back.graph == graph
    assert verify(back.structure) == ()
    assert dict(STORED_GRAPH.split(back)) == kept


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.name)
def test_models_come_back_whole(model: Any) -> None:  # noqa: ANN401  # parameters of pytest
    graph = model.build()
    back = STORED_GRAPH.join(_bytes(graph).__getitem__).graph
    assert back == replace(graph, block=in_definition_order(graph.block))
    assert text_of_graph(back) == text_of_graph(graph)


@given(graphs())
def test_the_digest_of_the_structure_is_that_of_the_graph(graph: Graph) -> None:
    """Another file, other lines and names: the same structure, other labels."""
    kept = _bytes(graph)
    assert digest_of(kept["structure"]) == graph_digest(graph)
    moved = parse_graph("\n\n" + text_of_graph(graph, with_provenance=False), "elsewhere")
    other = _bytes(replace(moved, name="other"))
    assert other["structure"] == kept["structure"]
    assert other["labels"] != kept["labels"]


def _changed(plain: object, junk: object) -> Iterator[object]:
    """``plain`` with ``junk`` in each place in turn, and with each part left out or doubled."""
    yield junk
    if isinstance(plain, tuple):
        items = cast("tuple[object, ...]", plain)
        for number, item in enumerate(items):
            yield (*items[:number], *items[number + 1 :])
            yield (*items[: number + 1], *items[number:])
            for other in _changed(item, junk):
                yield (*items[:number], other, *items[number + 1 :])


@given(data=st.data())
def test_what_is_no_structure_is_refused(data: st.DataObject) -> None:
    """And what is one, in spite of the damage, is well formed and written as it was read."""
    graph = data.draw(graphs())
    junk = data.draw(st.sampled_from([None, -1, 0, 10**30, 1.0, "F16", "gelu", True, (), ("F8", 99), (0,)]))
    changed = data.draw(st.sampled_from(list(_changed(plain_structure(graph), junk))))
    try:
        made = structure_of_plain(changed)
    except ValueError:
        return
    assert verify(made) == ()
    assert plain_structure(made) == changed


def test_deep_nesting_is_refused() -> None:
    block: Any = ((), (), (), ())
    for _ in range(5000):
        block = ((), (), (("repeat", (1, 1, 0, block), (), ()),), ())
    with pytest.raises(ValueError, match="no structure of a graph"):
        structure_of_plain((("graph", 2), 0, (), block))


@pytest.mark.parametrize("text", [b"", b"[]", b'["g",[[["x","f",1]]]]', b'["g",[[[1]]]]', b'["g",null]'])
def test_what_are_no_labels_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        LABELS.decode(text)


def test_labels_belong_to_a_structure() -> None:
    graph = parse_graph("graph g\ninput x: F16[2]\ny: F16[2] = gelu(x)\noutput y", "f")
    made = stored(graph)
    for blocks in ((), made.labels.blocks * 2, (made.labels.blocks[0][:1],)):
        foreign = dataclasses.replace(made.labels, blocks=blocks)
        with pytest.raises(ValueError, match="labels"):
            _ = StoredGraph(structure=made.structure, labels=foreign).graph


def test_a_stage_gives_a_graph(tmp_path: Path) -> None:
    """Through the store: kept, reused, decoded again; a moved line changes the labels alone."""
    text = "graph g\ninput x: F16[2]\ny: F16[2] = gelu(x)\noutput y\n"
    sources = Sources(root=REPOSITORY.root, packages=(*REPOSITORY.packages, "tests"))
    with Store.open(tmp_path, strict=True, sources=sources) as store:
        first = store.run(SAMPLE, Source(text=text), None)
        again = store.run(SAMPLE, Source(text=text), None)
        moved = store.run(SAMPLE, Source(text=f"\n{text}"), None)
    assert not first.hit
    assert again.hit
    assert again.value().graph == parse_graph(text, "sample")
    structures = [result.part("structure", STRUCTURE).digest for result in (first, moved)]
    assert structures == [graph_digest(parse_graph(text, "sample"))] * 2
    assert first.part("labels", LABELS).digest != moved.part("labels", LABELS).digest
