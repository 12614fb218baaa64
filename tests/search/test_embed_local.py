"""The embedder that runs a model of this machine: real ONNX graphs and tokenizers, small enough to reckon by hand."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from anima.errors import BadArguments, BadConfig, MissingExtra
from anima.model import Embedder
from anima.search.embed import DEFAULT_MODEL, find_model, local_embedder
from anima.search.embed.client import EmbedderDown
from anima.testing import Clock, dice

onnx = pytest.importorskip("onnx")
tokenizers = pytest.importorskip("tokenizers")
pytest.importorskip("onnxruntime")

# One row per word: the model's whole knowledge. The unknown word and the padding have none.
WORDS = {
    "[PAD]": [9.0, 9.0, 9.0],
    "[UNK]": [0.0, 0.0, 1.0],
    "tea": [4.0, 0.0, 0.0],
    "milk": [0.0, 2.0, 0.0],
    "query:": [0.0, 0.0, 8.0],
    "nan": [float("nan")] * 3,
}


def make_graph(
    file: Path, *, output: str = "last_hidden_state", width: str = "INT64", wanted: str | None = None
) -> None:
    """A graph that looks each word up, and pools when its output is called `sentence_embedding`."""
    helper, kinds = onnx.helper, onnx.TensorProto
    table = onnx.numpy_helper.from_array(np.array(list(WORDS.values()), dtype=np.float32), "table")
    kind = getattr(kinds, width)
    names = ["input_ids", "attention_mask", "token_type_ids", *([wanted] if wanted else [])]
    inputs = [helper.make_tensor_value_info(name, kind, ["batch", "tokens"]) for name in names]
    nodes = [helper.make_node("Gather", ["table", "input_ids"], ["states"], axis=0)]
    if output == "sentence_embedding":
        nodes.append(helper.make_node("ReduceMax", ["states"], [output], axes=[1], keepdims=0))
        shape = ["batch", 3]
    else:
        nodes.append(helper.make_node("Identity", ["states"], [output]))
        shape = ["batch", "tokens", 3]
    outputs = [helper.make_tensor_value_info(output, kinds.FLOAT, shape)]
    graph = helper.make_graph(nodes, "words", inputs, outputs, initializer=[table])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    file.parent.mkdir(parents=True, exist_ok=True)
    onnx.save(model, str(file))


def make_tokenizer(file: Path) -> None:
    """Words at spaces; a tilde is nothing. Padding to a fixed length is switched on, as some published files have it."""
    vocabulary = {word: number for number, word in enumerate(WORDS)}
    tokenizer = tokenizers.Tokenizer(tokenizers.models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer = tokenizers.normalizers.Replace("~", "")
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.WhitespaceSplit()
    tokenizer.enable_padding(length=16)
    tokenizer.enable_truncation(16)
    tokenizer.save(str(file))


def make_model(folder: Path, *, at: str = "model.onnx", files: dict[str, Any] | None = None, **graph: Any) -> Path:
    make_graph(folder / at, **graph)
    make_tokenizer(folder / "tokenizer.json")
    for name, content in ({"config.json": {}} | (files or {})).items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(json.dumps(content), encoding="utf-8")
    return folder


def embedder(model: Path | str, *, runtime: Any = "onnx", cache: Path | None = None) -> Embedder:
    return local_embedder(str(model), runtime=runtime, clock=Clock(), dice=dice(), cache=cache)


def unit(*values: float) -> np.ndarray:
    row = np.array(values, dtype=np.float32)
    return np.asarray(row / np.linalg.norm(row))


@pytest.mark.parametrize("at", ["model.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx"])
def test_rows_are_the_normalised_mean_of_the_tokens_in_the_order_of_the_texts(tmp_path: Path, at: str) -> None:
    rows = embedder(make_model(tmp_path, at=at)).embed(["tea milk", "milk", "tea tea milk tea"], kind="document")

    assert rows.dtype == np.float32
    np.testing.assert_allclose(rows, [unit(2, 1, 0), unit(0, 1, 0), unit(3, 0.5, 0)], atol=1e-6)


def test_a_text_has_the_same_row_alone_and_among_longer_ones(tmp_path: Path) -> None:
    model = embedder(make_model(tmp_path))
    texts = ["tea " * (n % 13 + 1) + "milk" for n in range(2500)]

    together = model.embed(texts, kind="document")

    alone = np.concatenate([model.embed([text], kind="document") for text in texts[:13]])
    np.testing.assert_allclose(together, np.tile(alone, (193, 1))[:2500], atol=1e-6)


@pytest.mark.parametrize(
    ("pooling", "row"),
    [
        ({"pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False}, unit(0, 2, 0)),
        ({"pooling_mode_max_tokens": True}, unit(4, 2, 0)),
        ({"pooling_mode_lasttoken": True}, unit(4, 0, 0)),
        ({"pooling_mode": "cls"}, unit(0, 2, 0)),
        ({"pooling_mode_mean_tokens": True, "word_embedding_dimension": 3}, unit(4, 2, 0)),
        ({}, unit(4, 2, 0)),
    ],
)
def test_pooling_is_what_the_model_s_folder_says(tmp_path: Path, pooling: dict[str, Any], row: np.ndarray) -> None:
    model = embedder(make_model(tmp_path, files={"1_Pooling/config.json": pooling}))

    rows = model.embed(["milk tea", "tea tea tea tea"], kind="document")

    np.testing.assert_allclose(rows, [row, unit(4, 0, 0)], atol=1e-6)


@pytest.mark.parametrize(
    "pooling",
    [
        {"pooling_mode_weightedmean_tokens": True},
        {"pooling_mode": ["cls", "mean"]},
        {"pooling_mode_cls_token": True, "pooling_mode_max_tokens": True},
    ],
)
def test_pooling_we_do_not_know_is_refused_rather_than_guessed(tmp_path: Path, pooling: dict[str, Any]) -> None:
    model = embedder(make_model(tmp_path, files={"1_Pooling/config.json": pooling}))

    with pytest.raises(EmbedderDown, match="pools") as caught:
        model.embed(["tea"], kind="document")
    assert caught.value.lasting


def test_a_graph_that_pools_by_itself_is_taken_at_its_word(tmp_path: Path) -> None:
    model = embedder(make_model(tmp_path, output="sentence_embedding"))

    np.testing.assert_allclose(model.embed(["tea milk"], kind="query"), [unit(4, 2, 0)], atol=1e-6)


def test_a_layer_that_the_graph_lacks_is_not_left_out_silently(tmp_path: Path) -> None:
    modules = [{"idx": 2, "path": "2_Dense", "type": "sentence_transformers.models.Dense"}]
    model = embedder(make_model(tmp_path, files={"modules.json": modules}))

    with pytest.raises(EmbedderDown, match="layer"):
        model.embed(["tea"], kind="document")


def test_a_graph_with_narrow_integers_works(tmp_path: Path) -> None:
    model = embedder(make_model(tmp_path, width="INT32"))

    np.testing.assert_allclose(model.embed(["tea"], kind="document"), [unit(1, 0, 0)], atol=1e-6)


def test_a_graph_that_wants_something_else_is_refused(tmp_path: Path) -> None:
    model = embedder(make_model(tmp_path, wanted="pixel_values"))

    with pytest.raises(EmbedderDown, match="pixel_values"):
        model.embed(["tea"], kind="document")


@pytest.mark.parametrize("file", ["model.onnx", "tokenizer.json", "1_Pooling/config.json", "modules.json"])
@pytest.mark.parametrize("damage", ["cut", "noise", "empty"])
def test_a_damaged_folder_is_an_embedder_that_is_down(tmp_path: Path, file: str, damage: str) -> None:
    folder = make_model(
        tmp_path, files={"1_Pooling/config.json": {"pooling_mode": "mean"}, "modules.json": [{"type": "x"}]}
    )
    whole = (folder / file).read_bytes()
    left = {"cut": whole[: len(whole) // 2], "noise": b"\xff\x00\x17" * 50, "empty": b""}[damage]
    (folder / file).write_bytes(left)

    with pytest.raises(EmbedderDown) as caught:
        embedder(folder).embed(["tea"], kind="document")
    assert caught.value.lasting and caught.value.hint


def test_numbers_that_are_none_do_not_reach_the_index(tmp_path: Path) -> None:
    model = embedder(make_model(tmp_path))

    with pytest.raises(EmbedderDown, match="numbers"):
        model.embed(["tea nan"], kind="document")
    assert model.embed(["tea"], kind="document").shape == (1, 3)


def test_the_prompts_of_the_folder_are_put_before_the_texts(tmp_path: Path) -> None:
    prompts = {"prompts": {"query": "query: ", "document": ""}}
    model = embedder(make_model(tmp_path, files={"config_sentence_transformers.json": prompts}))

    np.testing.assert_allclose(model.embed(["tea"], kind="query"), [unit(4, 0, 8)], atol=1e-6)
    np.testing.assert_allclose(model.embed(["tea"], kind="document"), [unit(4, 0, 0)], atol=1e-6)


def test_a_long_text_is_cut_where_the_model_stops_reading(tmp_path: Path) -> None:
    folder = make_model(tmp_path, files={"sentence_bert_config.json": {"max_seq_length": 10}})

    np.testing.assert_allclose(
        embedder(folder).embed(["tea " * 10 + "milk " * 90], kind="document"), [unit(1, 0, 0)], atol=1e-6
    )
    np.testing.assert_allclose(
        embedder(folder).embed(["tea " * 9 + "milk " * 9], kind="document"), [unit(36, 2, 0)], atol=1e-6
    )


@pytest.mark.parametrize("pooling", ["mean", "cls", "max", "lasttoken"])
def test_texts_without_meaning_get_zeros(tmp_path: Path, pooling: str) -> None:
    folder = make_model(tmp_path, files={"1_Pooling/config.json": {"pooling_mode": pooling}})

    rows = embedder(folder).embed(["", "tea", " \n", "~~~"], kind="document")

    assert rows.any(axis=1).tolist() == [False, True, False, False]
    assert np.isfinite(rows).all()


def test_only_blank_texts_still_have_the_width_of_the_model(tmp_path: Path) -> None:
    model = embedder(make_model(tmp_path))

    assert model.embed([], kind="document").shape == (0, 0)
    assert model.embed([" "], kind="document").shape == (1, 3)
    assert model.dimension == 3


def test_a_lone_surrogate_does_not_stop_the_tokenizer(tmp_path: Path) -> None:
    rows = embedder(make_model(tmp_path)).embed(["tea \ud800"], kind="document")

    np.testing.assert_allclose(rows, [unit(4, 0, 1)], atol=1e-6)


def test_one_text_instead_of_a_list_is_refused(tmp_path: Path) -> None:
    model = embedder(make_model(tmp_path))

    with pytest.raises(BadArguments):
        model.embed("tea", kind="document")
    with pytest.raises(BadArguments):
        model.embed(["tea"], kind="other")  # type: ignore[arg-type]


def test_many_threads_load_and_share_one_model(tmp_path: Path) -> None:
    model, rows = embedder(make_model(tmp_path)), {}

    def ask(number: int) -> None:
        rows[number] = model.embed(["tea " * number + "milk"], kind="document")[0]

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    np.testing.assert_allclose([rows[n] for n in range(8)], [unit(4 * n, 2, 0) for n in range(8)], atol=1e-6)


def test_a_closed_model_is_loaded_again_when_it_is_needed(tmp_path: Path) -> None:
    model = embedder(make_model(tmp_path))
    first = model.embed(["tea milk"], kind="document")
    model.close()

    np.testing.assert_array_equal(model.embed(["tea milk"], kind="document"), first)


def test_the_name_tells_other_weights_and_prefixes_apart_and_no_path(tmp_path: Path) -> None:
    def prompting(**prompts: str) -> dict[str, Any]:
        return {"config_sentence_transformers.json": {"prompts": prompts}}

    names = [
        embedder(make_model(tmp_path / "one" / "words")).name,
        embedder(make_model(tmp_path / "two" / "words", width="INT32")).name,
        embedder(make_model(tmp_path / "three" / "words", files=prompting(document="d: "))).name,
        embedder(make_model(tmp_path / "four" / "words", files=prompting(query="q: "))).name,
    ]

    assert len(set(names)) == 3 and names[0] == names[3]
    assert all(name.startswith("local:words@") for name in names)


# Finding a model


def test_a_model_in_the_hub_s_cache_is_found_by_its_name(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    place = tmp_path / "models--sentence-transformers--words-v2"
    (place / "refs").mkdir(parents=True)
    (place / "refs" / "main").write_text("a" * 40, encoding="utf-8")
    folder = make_model(place / "snapshots" / ("a" * 40))

    assert find_model("sentence-transformers/words-v2", cache=tmp_path) == folder
    assert find_model("words-v2", cache=tmp_path) == folder
    model = embedder("words-v2", cache=tmp_path)
    assert model.name.startswith("local:words-v2@") and model.embed(["tea"], kind="query").shape == (1, 3)


def test_a_model_in_an_installed_package_is_found_and_the_package_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_model(tmp_path / "words_in_a_wheel" / "model")
    (folder.parent / "__init__.py").write_text("raise SystemExit('this package was run')\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))

    assert find_model("words-in-a-wheel", cache=tmp_path) == folder


def test_a_model_that_is_not_here_is_a_clear_error_and_nothing_is_fetched(tmp_path: Path) -> None:
    program = f"""
        import sys
        sys.addaudithook(lambda event, _: sys.exit(f"asked for {{event}}") if event.startswith("socket.") else None)
        from pathlib import Path
        from anima.search.embed import local_embedder
        from anima.errors import BadConfig
        from anima.testing import Clock, dice
        try:
            cache = Path({str(tmp_path)!r})
            local_embedder("nobody/has-this-model", runtime="onnx", clock=Clock(), dice=dice(), cache=cache)
        except BadConfig as error:
            sys.exit(0 if "not on this machine" in str(error) else str(error))
        sys.exit("no error")
    """

    done = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False)

    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("model", ["", "x" * 5000, "a\0b", "../..//", "__main__", "a/b/c/d", "json"])
def test_a_name_that_is_none_is_refused(tmp_path: Path, model: str) -> None:
    with pytest.raises((BadConfig, MissingExtra)):
        embedder(model, cache=tmp_path)


def test_a_folder_without_a_model_is_refused_when_onnx_is_asked_for(tmp_path: Path) -> None:
    with pytest.raises(BadConfig, match=r"model\.onnx"):
        embedder(tmp_path, runtime="onnx")


def test_a_missing_runtime_names_the_part_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = make_model(tmp_path)
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(MissingExtra) as caught:
        embedder(folder, runtime="sentence-transformers")
    assert caught.value.extra == "sentence-transformers"

    monkeypatch.setitem(sys.modules, "onnxruntime", None)
    with pytest.raises(MissingExtra) as caught:
        embedder(folder, runtime="onnx")
    assert caught.value.extra == "onnx"


# The real thing, where it is installed


def test_sentence_transformers_puts_like_beside_like() -> None:
    pytest.importorskip("sentence_transformers")
    if find_model(DEFAULT_MODEL) is None:
        pytest.skip(f"{DEFAULT_MODEL} is not on this machine")
    model = embedder(DEFAULT_MODEL, runtime="sentence-transformers")

    rows = model.embed(
        ["The cat sleeps on the sofa.", "A kitten naps on the couch.", "Interest rates rose."], kind="query"
    )

    assert rows.shape == (3, 384) and model.dimension == 384
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    assert rows[0] @ rows[1] > 0.5 > 0.2 > rows[0] @ rows[2]
