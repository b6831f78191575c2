"""Pictures and sounds from the page: read by their content, bounded, refused in words."""

import io
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import made_media
import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

from headscope.server import media
from headscope.server.errors import Refused
from headscope.server.media import PICTURES, SOUNDS, MediaStore
from headscope.server.memory import Memory
from headscope.server.options import Limits
from headscope.views.wire import decode


@pytest.fixture(scope="module")
def media_models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("media")
    made_media.save_vit(root / "vit")
    made_media.save_vit(root / "grey", grey=True)
    made_media.save_whisper(root / "whisper")
    made_media.save_whisper(root / "languages", languages=True)
    return root


def upload(client: TestClient, data: bytes):
    return client.post("/api/media", content=data, headers={"Content-Type": "application/octet-stream"})


def props(client: TestClient, event: dict, key: str = "trace"):
    assert event["state"] == "done", event
    return decode(client.get(f"/api/traces/{event['trace']}/{key}").content)


@pytest.mark.parametrize(
    ("mode", "kind", "note"),
    [
        ("RGB", "JPEG", ""),
        ("P", "PNG", "palette"),
        ("RGBA", "PNG", "white"),
        ("I;16", "PNG", "16 bits"),
        ("CMYK", "JPEG", "CMYK"),
        ("1", "PNG", "black and white"),
    ],
)
def test_pictures_of_every_mode_are_taken_and_what_is_done_is_said(start, run, media_models, mode, kind, note) -> None:
    client = start(models=(str(media_models / "vit"),))
    answer = upload(client, made_media.png(made_media.picture(mode=mode), kind)).json()
    assert answer["kind"] == "image" and answer["about"].startswith("40 × 30 pixels")
    assert note in " ".join(answer["notes"])
    trace = props(client, run(client, text=None, media=answer["id"])[-1])
    assert trace.props["stacks"][0]["looks"] == "image" and set(answer["notes"]) <= set(trace.props["warnings"])
    pixels = props(client, run(client, text=None, media=answer["id"])[-1], "image/main").arrays["pixels"]
    assert pixels.shape == (24, 24, 3)


def test_greys_and_colours_are_told_apart(start, run, media_models) -> None:
    client = start(models=(str(media_models / "grey"), str(media_models / "vit")))
    grey, colour = (upload(client, made_media.png(made_media.picture(mode=mode))).json()["id"] for mode in ("L", "RGB"))
    seen = props(client, run(client, text=None, media=colour)[-1])
    assert any("turned into" in warning for warning in seen.props["warnings"])
    assert not props(client, run(client, text=None, media=grey)[-1]).props["warnings"]
    other = run(client, text=None, media=grey, model=str(media_models / "vit"))[-1]
    assert any("the same grey" in warning for warning in props(client, other).props["warnings"])


@pytest.mark.parametrize(
    ("data", "status", "error", "error_text"),
    [
        (b"", 422, "InputError", "empty"),
        (b"hello, this is text", 422, "NotAnImage", "no picture and no sound"),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", 422, "NotAnImage", "no picture"),
        (made_media.png(made_media.picture())[:120], 422, "DamagedImage", "to its end"),
        (b"ID3\x04" + bytes(100), 422, "NotWav", "MP3"),
        (b"\xff\xfb\x90\x00" + bytes(100), 422, "NotWav", "MP3"),
        (b"OggS" + bytes(100), 422, "NotWav", "Ogg"),
        (made_media.wav()[:30], 422, "DamagedSound", "cannot be read as sound"),
        (b"RIFF\x24\0\0\0WAVEfmt " + bytes(40), 422, "DamagedSound", "cannot be read as sound"),
        (bytes(200_001), 413, "TooLarge", "larger than"),
    ],
)
def test_what_cannot_be_used_is_refused_in_words(start, data, status, error, error_text) -> None:
    answer = upload(start(limits={"media_bytes": 200_000}), data)
    assert answer.status_code == status
    assert answer.json()["error"] == error and error_text in answer.json()["message"]
    if error == "NotWav":
        assert "ffmpeg" in answer.json()["hint"]


def test_a_small_file_may_not_hold_a_huge_picture() -> None:
    store = MediaStore(Memory(10**9), Limits(media_pixels=10_000))
    data = made_media.png(Image.new("1", (200, 200)))
    with pytest.raises(Exception, match="200 × 200 pixels"):
        store.read(data)


@pytest.mark.parametrize(
    ("data", "error_text"),
    [
        (made_media.wav(130, rate=100), "130 s long; this server takes up to 120 s"),
        (made_media.wav(1000, rate=1), "1,000 s long"),
        (made_media.wav().replace(b"\x02\x00\x10\x00data", b"\x05\x00\x28\x00data"), "samples of 40 bits"),
    ],
)
def test_a_small_file_may_not_hold_a_sound_that_never_ends(data: bytes, error_text: str) -> None:
    with pytest.raises(Refused, match=error_text):
        MediaStore(Memory(10**9), Limits()).read(data)


def test_an_upload_leaves_the_warnings_of_a_run_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    real = warnings.catch_warnings

    def count(*arguments, **options):
        calls.append(1)
        return real(*arguments, **options)

    with monkeypatch.context() as patched:
        patched.setattr(warnings, "catch_warnings", count)
        assert MediaStore(Memory(10**9), Limits()).read(made_media.png(made_media.picture())).kind == "image"
    assert not calls  # how warnings are shown belongs to the thread of runs


def test_only_the_newest_uploads_are_kept(start) -> None:
    first, second = (made_media.png(made_media.picture(width)) for width in (40, 50))
    client = start(limits={"memory": 100_000})
    client.workbench.media.cache.limit = 3 * len(second)  # both have a thumbnail of about the same size
    old, new = (upload(client, data).json()["id"] for data in (first, second))
    gone = client.get(f"/api/media/{old}")
    assert gone.status_code == 404 and "Choose the file again" in gone.json()["hint"]
    small = Image.open(io.BytesIO(client.get(f"/api/media/{new}").content))
    assert small.size == (50, 30)
    assert upload(client, second).json()["id"] == new  # the same bytes have the same name


def test_a_picture_that_no_run_has_room_for_is_refused_before_it_is_decoded(start, monkeypatch) -> None:
    picture = made_media.png(Image.new("L", (1000, 1000)))
    monkeypatch.setattr(Image.Image, "load", lambda self: pytest.fail("decoded"))
    answer = upload(start(limits={"memory": 20_000_000}), picture)
    assert answer.status_code == 413
    assert answer.json()["message"] == "this picture takes up to 24 MB of memory; this server may use 18 MB in all."
    assert "--max-memory 1GB" in answer.json()["hint"]


def test_twelve_pictures_at_once_are_decoded_one_after_another(start, monkeypatch) -> None:
    client = start(limits={"memory": 1_200_000})
    memory, used, decode = client.workbench.memory, [], media._picture

    def measure_and_decode(*arguments):
        used.append(memory.used_bytes)
        return decode(*arguments)

    monkeypatch.setattr(media, "_picture", measure_and_decode)
    files = [made_media.png(Image.new("RGB", (200, 200), (number, 0, 0))) for number in range(12)]
    with ThreadPoolExecutor(12) as pool:
        answers = list(pool.map(lambda data: upload(client, data), files))
    assert {answer.status_code for answer in answers} == {200} and len(used) == 12
    assert 24 * 200 * 200 <= max(used) <= memory.limit  # a second one would not have fitted


def test_a_thumbnail_is_drawn_when_the_picture_is_uploaded(client: TestClient, monkeypatch) -> None:
    id = upload(client, made_media.png(made_media.picture(400))).json()["id"]
    monkeypatch.setattr(Image, "open", lambda *arguments, **more: pytest.fail("decoded"))
    answer = client.get(f"/api/media/{id}")
    assert answer.status_code == 200 and answer.content.startswith(b"\x89PNG")


def test_a_sound_at_another_rate_is_resampled_and_channels_are_mixed(start, run, media_models) -> None:
    client = start(models=(str(media_models / "whisper"),))
    answer = upload(client, made_media.wav(0.5, 44_100, channels=2)).json()
    assert answer["kind"] == "audio" and "44,100" in answer["about"] and "mixed down" in answer["notes"][0]
    last = run(client, text=None, media=answer["id"], target="the doctor asked a nurse")[-1]
    trace = props(client, last)
    assert any("resampled to the model's 16,000" in warning for warning in trace.props["warnings"])
    sound = props(client, last, "sound/encoder")
    assert abs(sound.props["heard"] - 0.5) < 0.001 and sound.props["seconds"] == 1.0
    assert [stack["looks"] for stack in trace.props["stacks"]] == ["sound", ""]


def test_a_speech_model_is_told_the_language_and_the_task(start, run, media_models) -> None:
    client = start(models=(str(media_models / "languages"),))
    model = client.post("/api/models", json={"name": str(media_models / "languages")}).json()
    assert (model["languages"], model["tasks"]) == (["en", "fr"], ["transcribe", "translate"])
    id = upload(client, made_media.wav(0.5)).json()["id"]

    def start_ids(**options: str) -> list[int]:
        last = run(client, text=None, media=id, target="asked", **options)[-1]
        return props(client, last).props["stacks"][1]["ids"][:4]

    # Start, language, task, no timestamps: as in Python.
    assert start_ids(language="fr", task="translate") == [1, 4, 6, 9]
    assert start_ids(language="en", task="transcribe") == [1, 3, 5, 9]
    assert start_ids(language="", task="translate")[2] == 6  # a field that was left empty says nothing
    last = run(client, text=None, media=id, language="xx")[-1]
    assert last["state"] == "failed" and "there is no language 'xx'" in last["message"]
    other = client.post("/api/models", json={"name": "builtin:gpt"}).json()
    assert other["languages"] == other["tasks"] == []


def test_a_sound_that_is_too_long_is_refused_or_cut(start, run, media_models) -> None:
    client = start(models=(str(media_models / "whisper"),))
    id = upload(client, made_media.wav(1.5)).json()["id"]
    last = run(client, text=None, media=id)[-1]
    assert last["state"] == "failed" and "1.50 s long but the model hears 1.00 s" in last["message"]
    assert last["hint"] == f"Give a shorter sound, or run the first {last['cut_to']}."
    assert run(client, text=None, media=id, truncate=True, target="the nurse")[-1]["state"] == "done"


def test_models_are_not_given_what_they_do_not_take(start, run, media_models) -> None:
    client = start(models=(str(media_models / "vit"),))
    sound = upload(client, made_media.wav()).json()["id"]
    last = run(client, text=None, media=sound)[-1]
    assert last["state"] == "failed" and "takes images, not a sound" in last["message"]
    last = run(client, text="a text")[-1]
    assert last["state"] == "failed" and "takes images, not text" in last["message"]


def test_a_text_model_is_not_given_a_picture(client: TestClient, run) -> None:
    last = run(client, text=None, media="preset:lorry")[-1]
    assert last["state"] == "failed" and "takes text, not a picture" in last["message"]


def test_presets_are_a_fixed_list(start, run, media_models) -> None:
    client = start(models=(str(media_models / "vit"), str(media_models / "whisper")))
    for name in PICTURES:
        assert run(client, text=None, media=f"preset:{name}")[-1]["state"] == "done"
    model = client.post("/api/models", json={"name": str(media_models / "vit")}).json()
    assert [preset["media"] for preset in model["presets"]] == [f"preset:{name}" for name in PICTURES]
    model = client.post("/api/models", json={"name": str(media_models / "whisper")}).json()
    assert model["kinds"] == ["audio", "target"] and len(model["presets"]) == len(SOUNDS)
    for wrong in ("preset:../gpt/README.md", "preset:", "nothing", "../../etc/passwd"):
        answer = client.post("/api/runs", json={"model": str(media_models / "vit"), "media": wrong})
        assert answer.status_code == 404 and answer.json()["error"] == "UnknownMedia"


def test_made_sounds_are_sounds() -> None:
    store = MediaStore(Memory(10**9), Limits())
    for make in SOUNDS.values():
        samples, rate = store.read(make()).sound()
        assert rate == 16_000 and 1.5 < len(samples) / rate < 3 and 0.4 < np.abs(samples).max() <= 0.5
