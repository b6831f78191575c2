import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import transformers as hf
from tiny_models import tiny_bert_tokenizer

import headscope as hs
from headscope import files
from headscope.atlases import Atlas, build_atlas
from headscope.atlases.atlas_index import INDEX, MapName, map_file, read_map, write_map
from headscope.corpora import Example
from headscope.errors import Cancelled, HeadscopeError, InputError, LoadError, UnknownHeadError
from headscope.files import with_checksum

TEXTS = ["the cat sat on the mat because it was tired.", "it was tired.", "the cat sat.", "he read it."]


PAIRS = [
    Example("a", text="the cat sat.", target="it was tired."),
    Example("b", text="he read it.", target="a dog."),
]


def hashes(folder: Path) -> dict[str, str]:
    """A hash of every file."""
    paths = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def test_points_are_the_queries_and_keys_that_heads_use(llama, tmp_path) -> None:
    # Llama turns them (rotary embeddings), and its heads share keys.
    atlas = hs.atlas(llama, TEXTS, tmp_path / "atlas", points=None, scores=False)
    traces = [llama.run(text, record="heads") for text in TEXTS]
    for head in ("L0H0", "L1H3"):
        layer, index = int(head[1]), int(head[3])
        records = [list(trace.layers.values())[layer] for trace in traces]
        n_groups = records[0].key.shape[0]
        assert n_groups < records[0].n_heads
        query = torch.cat([record.query[index] for record in records])
        key = torch.cat([record.key[index * n_groups // record.n_heads] for record in records])
        vectors = atlas.vectors(head)
        assert torch.allclose(vectors.vectors[0], query.float(), rtol=1e-3, atol=1e-3)
        assert torch.allclose(vectors.vectors[1], key.float(), rtol=1e-3, atol=1e-3)
    assert atlas.place("L0H0").is_causal


def test_tokens_are_a_table(atlas) -> None:
    tokens = atlas.tokens().to_pylist()
    assert [token["row"] for token in tokens] == list(range(len(tokens)))
    assert atlas.n_tokens == {"main": len(tokens)}
    starts = atlas.starts("main")
    assert all(token["position"] == token["row"] - starts[token["example"]] for token in tokens)
    [(count,)] = atlas.sql("select count(*) from tokens where text = 'the'").fetchall()
    assert count == next(token["frequency"] for token in tokens if token["text"].strip() == "the")
    [(least,)] = atlas.sql("select min(lifted_spearman) from scores").fetchall()
    assert least == pytest.approx(-1.0)


def test_tokens_have_the_class_that_a_classifier_predicts_for_their_text(atlas) -> None:
    tokenizer = tiny_bert_tokenizer()
    torch.manual_seed(0)
    sizes: Any = {"hidden_size": 16, "num_attention_heads": 2, "intermediate_size": 32, "num_hidden_layers": 1}
    labels = dict(enumerate("abc"))
    config = hf.BertConfig(vocab_size=len(tokenizer), id2label=labels, initializer_range=1.0, **sizes)
    model = hs.Model(hf.BertForSequenceClassification(config).eval(), tokenizer)
    tokens = hs.atlas(model, TEXTS, points=None, map=None, scores=False).tokens()
    by_example = set(zip(tokens.column("example").to_pylist(), tokens.column("predicted").to_pylist(), strict=True))
    answers = [model.run(text).predictions(1)[0].text for text in TEXTS]
    assert sorted(by_example) == list(enumerate(answers)) and len(set(answers)) > 1
    config.problem_type = "multi_label_classification"
    several = hs.atlas(model, TEXTS, points=None, map=None, scores=False)
    for other in (several, atlas):  # several classes, or next tokens
        assert set(other.tokens().column("predicted").to_pylist()) == {None}


def test_cross_attention_joins_the_decoder_with_the_encoder(marian, tmp_path) -> None:
    atlas = hs.atlas(marian, PAIRS, points=None)
    place = atlas.place("cross.L0H1")
    assert [(cloud.role, cloud.stack) for cloud in place.clouds] == [("query", "decoder"), ("key", "encoder")]
    assert len(atlas.map("cross.L0H1")) == atlas.n_tokens["decoder"] + atlas.n_tokens["encoder"]
    assert atlas.scores()["cross.L0H1"].lifted_spearman == pytest.approx(-1.0)


@pytest.mark.parametrize(("space", "first"), [("value", "L0H0"), ("mixed", "L0H0"), ("residual", "L0")])
def test_other_spaces_have_one_cloud(gpt, space, first: str) -> None:
    atlas = hs.atlas(gpt, TEXTS, space=space, points=None)
    assert next(iter(atlas)) == first
    trace = gpt.run(TEXTS[0], record="full")
    layer = next(iter(trace.layers.values()))
    expected = trace.residuals["main"][0] if space == "residual" else getattr(layer, space)[0]
    n_tokens = len(trace.tokens["main"])
    assert torch.allclose(atlas.vectors(first).vectors[0][:n_tokens], expected.float(), rtol=1e-3, atol=1e-3)
    assert atlas.map(first).shape == (sum(atlas.n_tokens.values()), 2)


def test_maps_are_kept_and_read_back(atlas) -> None:
    points = atlas.vectors("L1H2").points("scaled")
    centred = (points - points.mean(0)).numpy()
    drawn = atlas.map("L1H2")
    assert np.square(drawn - drawn.mean(0)).sum() == pytest.approx(
        np.sort(np.linalg.eigvalsh(centred.T @ centred))[-2:].sum(), rel=1e-3
    )
    assert map_file(atlas.folder, MapName(), "L1H2").is_file()
    assert MapName() in atlas.maps()
    assert atlas.map("L1H2", "umap", dims=3, coordinates="lifted").shape == (len(points), 3)


def test_sixteen_bits_keep_shapes(tmp_path) -> None:
    points = np.random.default_rng(0).normal(size=(50, 2)) * [100.0, 1.0]
    write_map(tmp_path / "m.safetensors", points)
    assert np.abs(read_map(tmp_path / "m.safetensors") - points).max() <= np.ptp(points[:, 0]) / 65535


def test_points_limit_how_many_examples_are_read(gpt) -> None:
    atlas = hs.atlas(gpt, TEXTS * 5, points=60, scores=False)
    assert 2 * atlas.n_tokens["main"] <= 60
    assert atlas.index["corpus"]["n_examples"] == 20
    assert 1 <= atlas.index["corpus"]["n_sampled"] < 20


def test_some_heads_alone(gpt) -> None:
    atlas = hs.atlas(gpt, TEXTS, heads=["L1H2", "L0H0"], scores=False, map=None)
    assert list(atlas) == ["L0H0", "L1H2"]
    with pytest.raises(UnknownHeadError, match="there is no L1H1"):
        atlas.map("L1H1")


# Stopped, killed, and resumed

KILLED = """
import os, signal, sys, torch
torch.set_num_threads(int(sys.argv[2]))
from tiny_models import FAMILIES, tiny_tokenizer
import headscope as hs
from headscope import files
from headscope.atlases import build_atlas
build_atlas._SHARD_TOKENS = 12
place, n = files.place_file, 0
def counting(*paths):
    global n
    n += 1
    if n > int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
    place(*paths)
files.place_file = counting
model = hs.Model(FAMILIES["gpt2"].build(), tiny_tokenizer(), name="tiny gpt")
hs.atlas(model, TEXTS, sys.argv[1], points=None)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="processes are killed otherwise on this system")
def test_a_killed_atlas_resumes_to_the_same_bytes(gpt, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(build_atlas, "_SHARD_TOKENS", 12)
    whole = hs.atlas(gpt, TEXTS, tmp_path / "whole", points=None)
    expected = hashes(whole.folder)
    assert sum(name.startswith("run/points") for name in expected) > 1
    folder, program = tmp_path / "killed", KILLED.replace("TEXTS", repr(TEXTS))
    tests = str(Path(__file__).parents[2])
    arguments = [str(folder), str(torch.get_num_threads()), "5"]
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        env={**os.environ, "PYTHONPATH": os.pathsep.join([tests, os.environ.get("PYTHONPATH", "")])},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert 0 < len(hashes(folder)) < len(expected)
    with pytest.raises(
        LoadError, match=r"is not complete: atlas\.json is missing\. Make it again with the same folder"
    ):
        Atlas.open(folder)
    hs.atlas(gpt, TEXTS, folder, points=None)
    assert hashes(folder) == expected


def test_what_was_stopped_while_drawing_goes_on(gpt, tmp_path, monkeypatch) -> None:
    cancel, folder = threading.Event(), tmp_path / "atlas"

    def stop(progress: hs.Progress) -> None:
        if progress.stage == "maps" and progress.done == 3:
            cancel.set()

    with pytest.raises(Cancelled):
        hs.atlas(gpt, TEXTS, folder, map="umap", points=None, progress=stop, cancel=cancel)
    drawn = {path.name: path.stat().st_mtime_ns for path in folder.glob("maps/*/*.safetensors")}
    assert 3 <= len(drawn) < 8
    atlas = hs.atlas(gpt, TEXTS, folder, map="umap", points=None, scores=False)
    after = {path.name: path.stat().st_mtime_ns for path in atlas.folder.glob("maps/*/*.safetensors")}
    assert len(after) == 8
    assert after.items() >= drawn.items()


# Bad input


def test_other_options_are_refused_before_anything_is_computed(gpt, tmp_path) -> None:
    hs.atlas(gpt, TEXTS, tmp_path / "atlas", points=None, scores=False, map=None)
    before = hashes(tmp_path)
    with pytest.raises(LoadError, match=r"holds another atlas: points was None, is 50\. Choose another folder"):
        hs.atlas(gpt, TEXTS, tmp_path / "atlas", points=50)
    with pytest.raises(HeadscopeError, match="holds another run"):
        hs.atlas(gpt, TEXTS[:2], tmp_path / "atlas", points=None)
    assert hashes(tmp_path) == before


def test_a_folder_of_something_else_is_left_alone(gpt, tmp_path) -> None:
    (tmp_path / "thesis.tex").write_text("…")
    with pytest.raises(LoadError, match=r"is not an atlas: it holds thesis\.tex"):
        hs.atlas(gpt, TEXTS, tmp_path)
    with pytest.raises(LoadError, match="there is no atlas in"):
        Atlas.open(tmp_path)


def test_another_version_is_refused(atlas, tmp_path) -> None:
    index = json.loads((atlas.folder / INDEX).read_text())
    del index["checksum"]
    (tmp_path / INDEX).write_text(json.dumps(with_checksum(index | {"version": 99})))
    with pytest.raises(LoadError, match="headscope-atlas 99, and this Headscope reads headscope-atlas 2"):
        Atlas.open(tmp_path)
    (tmp_path / INDEX).write_text(json.dumps(index | {"checksum": "0"}))
    with pytest.raises(LoadError, match="is damaged: it does not match its checksum"):
        Atlas.open(tmp_path)


def test_damage_is_noticed(gpt, tmp_path) -> None:
    atlas = hs.atlas(gpt, TEXTS, tmp_path / "atlas", points=None, scores=False)
    file = map_file(atlas.folder, MapName(), "L0H0")
    data = bytearray(file.read_bytes())
    data[-3] ^= 1
    file.write_bytes(data)
    with pytest.raises(LoadError, match=r"L0H0\.safetensors is damaged: it does not match its checksum"):
        atlas.map("L0H0")
    tokens = atlas.folder / "tokens.parquet"
    data = bytearray(tokens.read_bytes())
    data[len(data) // 2] ^= 1
    tokens.write_bytes(data)
    with pytest.raises(LoadError, match=r"tokens\.parquet is damaged"):
        Atlas.open(atlas.folder).tokens()


@pytest.mark.parametrize("name", ["tokens.parquet", "scores.parquet"])
def test_what_is_damaged_is_repaired_by_making_the_atlas_again(gpt, tmp_path, name: str) -> None:
    folder = tmp_path / "atlas"
    hs.atlas(gpt, TEXTS, folder, points=None)
    before = hashes(folder)
    data = bytearray((folder / name).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / name).write_bytes(data)
    hs.atlas(gpt, TEXTS, folder, points=None)
    assert hashes(folder) == before


def test_a_damaged_index_is_repaired_as_its_message_says(gpt, tmp_path) -> None:
    folder = tmp_path / "atlas"
    hs.atlas(gpt, TEXTS, folder, points=None)
    before = hashes(folder)
    (folder / INDEX).write_text((folder / INDEX).read_text().replace("tiny gpt", "tiny gpu"))
    with pytest.raises(LoadError, match="Delete it, and make the atlas again with the same folder and options"):
        hs.atlas(gpt, TEXTS, folder, points=None)
    (folder / INDEX).unlink()
    with pytest.raises(
        HeadscopeError, match=r"holds another run: .*scale"
    ):  # maps and scores are those of another scale
        hs.atlas(gpt, TEXTS, folder, points=None, scale="correlation")
    hs.atlas(gpt, TEXTS, folder, points=None)
    assert hashes(folder) == before


def test_where_a_map_lies_is_verified_too(tmp_path) -> None:
    file = tmp_path / "m.safetensors"
    write_map(file, np.array([[0.25, 1.0], [3.0, 4.0]]))
    data = file.read_bytes()
    assert b"0.25" in data
    file.write_bytes(data.replace(b"0.25", b"0.75"))
    with pytest.raises(LoadError, match="does not match its checksum"):
        read_map(file)


def test_a_full_disk_loses_nothing(gpt, tmp_path, monkeypatch) -> None:
    folder = tmp_path / "atlas"
    hs.atlas(gpt, TEXTS, folder, points=None, map=None, scores=False)
    before = hashes(folder)

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(files, "place_file", full)
        with pytest.raises(LoadError, match=r"could not write .*L0H0.*No space left on device"):
            Atlas.open(folder).draw()
    assert hashes(folder) == before
    Atlas.open(folder).draw()


def test_a_disk_that_fills_up_while_an_atlas_is_made_loses_nothing(gpt, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(build_atlas, "_SHARD_TOKENS", 12)
    expected = hashes(hs.atlas(gpt, TEXTS, tmp_path / "whole", points=None).folder)
    place, folder, n_written = files.place_file, tmp_path / "atlas", 0

    def filling(*paths: Path) -> None:
        nonlocal n_written
        n_written += 1
        if n_written > 5:
            raise OSError(errno.ENOSPC, "No space left on device")
        place(*paths)

    with monkeypatch.context() as patched:
        patched.setattr(files, "place_file", filling)
        with pytest.raises(LoadError, match=r"could not write .*No space left on device"):
            hs.atlas(gpt, TEXTS, folder, points=None)
    written = hashes(folder)
    assert 0 < len(written) < len(expected) and not any("partial" in name for name in written)
    hs.atlas(gpt, TEXTS, folder, points=None)
    assert hashes(folder) == expected


def test_a_corpus_with_nothing_in_it_is_refused(gpt, tmp_path) -> None:
    with pytest.raises(InputError, match="there is nothing to draw"):
        hs.atlas(gpt, [], tmp_path / "atlas")
    assert not (tmp_path / "atlas").exists()


def test_a_corpus_of_one_token_is_drawn_and_says_what_it_cannot(gpt) -> None:
    atlas = hs.atlas(gpt, ["cat"])
    assert atlas.map("L0H0").shape == (2 * atlas.n_tokens["main"], 2)
    assert np.isnan(atlas.scores()["L0H0"].pearson)
    with pytest.raises(InputError, match="L0H0: umap needs at least 20 points"):
        atlas.map("L0H0", "umap")


def test_a_head_whose_queries_are_all_equal_is_drawn_and_listed_as_dead(gpt, monkeypatch) -> None:
    model = hs.Model(gpt.module, gpt.processor, name="tiny gpt")
    attention = model.module.transformer.h[0].attn.c_attn
    weight, bias = attention.weight.detach().clone(), attention.bias.detach().clone()
    try:
        with torch.no_grad():
            attention.weight[:, :8] = 0.0  # queries of the first head
        atlas = hs.atlas(model, TEXTS, points=None)
    finally:
        with torch.no_grad():
            attention.weight.copy_(weight)
            attention.bias.copy_(bias)
    assert float(atlas.vectors("L0H0").vectors[0].std(0).max()) == 0.0
    assert np.isfinite(atlas.map("L0H0")).all()
    assert ("dead", "L0H0") in [(anomaly.kind, anomaly.head) for anomaly in atlas.anomalies()]


@pytest.mark.parametrize("layer", [0, 1])
def test_layers_with_nan_are_left_out_and_named(gpt, layer: int) -> None:
    model = hs.Model(gpt.module, gpt.processor, name="tiny gpt")
    bias = model.module.transformer.h[layer].attn.c_attn.bias
    before = bias.detach().clone()
    try:
        with torch.no_grad():
            bias[0] = torch.nan
        if layer == 0:  # and so is all that comes after it
            with pytest.raises(InputError, match="nothing to draw of tiny gpt: L0: a query vector of it holds NaN"):
                hs.atlas(model, TEXTS, points=None)
            return
        atlas = hs.atlas(model, TEXTS, points=None)
    finally:
        with torch.no_grad():
            bias.copy_(before)
    assert {address[:2] for address in atlas.addresses} == {"L0"}
    assert atlas.index["absent"] == {"L1": "a query vector of it holds NaN or infinity"}
    assert all(np.isfinite(score.pearson) for score in atlas.scores().values()) and atlas.anomalies() is not None
    with pytest.raises(UnknownHeadError, match="L1H2 is not in this atlas: a query vector of it holds NaN"):
        atlas.map("L1H2")


def test_unknown_choices_are_refused(gpt, atlas) -> None:
    with pytest.raises(InputError, match="'som' is none of pca, tsne, umap"):
        hs.atlas(gpt, TEXTS, map="som")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="at least 2 points a head"):
        hs.atlas(gpt, TEXTS, points=1)
    with pytest.raises(InputError, match="there is no stack 'encoder'"):
        atlas.tokens("encoder")
    with pytest.raises(UnknownHeadError, match="there is no L9H9"):
        atlas.map("L9H9")
