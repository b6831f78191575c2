import pytest
from PIL import Image

from headscope.corpora import corpus
from headscope.errors import HeadscopeWarning, InputError


@pytest.fixture
def folder(tmp_path):
    for name in ("cat/2.png", "cat/1.png", "dog/1.jpg", "loose.png"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        Image.new("RGB", (4, 4)).save(tmp_path / name)
    (tmp_path / "notes.txt").write_text("not an image")
    return tmp_path


def test_subfolders_are_classes(folder):
    pictures = corpus(folder)
    assert [(picture.id, picture.label) for picture in pictures] == [
        ("cat/1.png", "cat"),
        ("cat/2.png", "cat"),
        ("dog/1.jpg", "dog"),
        ("loose.png", None),
    ]
    assert all(picture.image.is_file() for picture in pictures)


def test_a_file_that_is_no_image_is_named(folder):
    (folder / "cat" / "3.png").write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"cat/3\.png: not an image"):
        list(corpus(folder))
    with pytest.warns(HeadscopeWarning, match=r"cat/3\.png"):
        assert len(list(corpus(folder, on_error="skip"))) == 4


def test_another_picture_of_the_same_name_is_another_corpus(folder):
    before = corpus(folder).survey()
    Image.new("RGB", (4, 4), "red").save(folder / "loose.png")
    assert corpus(folder).survey().sha256 != before.sha256


def test_a_folder_without_images_is_refused(tmp_path):
    with pytest.raises(InputError, match="there are no images"):
        corpus(tmp_path)
