import numpy as np
import pytest

from zerogap import storage
from zerogap.storage import read_arrays, write_arrays


@pytest.fixture
def arrays():
    return {"a": np.arange(6.0).reshape(2, 3), "name": "single", "count": 3, "none": np.zeros(0, dtype=np.int64)}


@pytest.mark.parametrize("name", ["p", "p.npz", "version.1"])
def test_what_is_written_under_a_name_is_read_under_it(tmp_path, arrays, name):
    written = write_arrays(tmp_path / name, arrays, "path")
    assert written.suffix == ".npz"
    for form in (tmp_path / name, str(tmp_path / name), written):
        data = read_arrays(form, "path")
        assert set(data) == set(arrays)
        np.testing.assert_array_equal(data["a"], arrays["a"])
        assert (data["name"], data["count"]) == ("single", 3)
        assert data["none"].dtype == np.int64
    assert [file.name for file in tmp_path.iterdir()] == [written.name]


def test_a_file_is_replaced_whole_or_not_at_all(tmp_path, arrays, monkeypatch):
    write_arrays(tmp_path / "p", arrays, "path")

    def full_disk(stream, **arrays):
        stream.write(b"half")
        raise OSError("no space left on device")

    monkeypatch.setattr(storage.np, "savez_compressed", full_disk)
    with pytest.raises(OSError, match="no space"):
        write_arrays(tmp_path / "p", {"a": np.zeros(1)}, "path")
    assert [file.name for file in tmp_path.iterdir()] == ["p.npz"]
    np.testing.assert_array_equal(read_arrays(tmp_path / "p", "path")["a"], arrays["a"])


def test_a_link_stays_a_link(tmp_path, arrays):
    (tmp_path / "folder").mkdir()
    write_arrays(tmp_path / "folder" / "real", {"a": np.zeros(1)}, "path")
    (tmp_path / "link.npz").symlink_to(tmp_path / "folder" / "real.npz")
    write_arrays(tmp_path / "link", arrays, "path")
    assert (tmp_path / "link.npz").is_symlink()
    assert read_arrays(tmp_path / "folder" / "real", "path")["name"] == "single"


def test_wrong_files_are_refused_with_a_line_that_says_so(tmp_path, arrays):
    with pytest.raises(FileNotFoundError, match=r"missing\.npz"):
        read_arrays(tmp_path / "missing", "path")
    for content in (b"", b"some text", b"PK\x03\x04 and no more"):
        (tmp_path / "wrong.npz").write_bytes(content)
        with pytest.raises(ValueError, match=r"wrong\.npz is not a file that zerogap wrote"):
            read_arrays(tmp_path / "wrong", "path")
    with open(tmp_path / "one.npz", "wb") as stream:
        np.save(stream, np.zeros(3))
    with pytest.raises(ValueError, match=r"not a file that zerogap wrote.*a single array"):
        read_arrays(tmp_path / "one", "path")
    np.savez(tmp_path / "others", a=np.zeros(3))
    with pytest.raises(ValueError, match="not those of a path"):
        read_arrays(tmp_path / "others", "path")
    np.savez(tmp_path / "pickled", a=np.array([{}], dtype=object))
    with pytest.raises(ValueError, match="not a file that zerogap wrote"):
        read_arrays(tmp_path / "pickled", "path")
    write_arrays(tmp_path / "model", arrays, "model")
    with pytest.raises(ValueError, match="holds a model; a path was asked for"):
        read_arrays(tmp_path / "model", "path")
    with pytest.raises(TypeError, match="'a' holds Python objects"):
        write_arrays(tmp_path / "p", {"a": [{}]}, "path")


@pytest.mark.parametrize("share", [0.3, 0.7, 0.99])
def test_a_damaged_file_is_refused(tmp_path, share):
    whole = write_arrays(tmp_path / "p", {"a": np.random.default_rng(0).standard_normal(2000)}, "path")
    content = whole.read_bytes()
    whole.write_bytes(content[: int(share * len(content))])
    with pytest.raises(ValueError, match="damaged"):
        read_arrays(whole, "path")
    changed = bytearray(content)
    changed[len(content) // 2] ^= 0xFF
    whole.write_bytes(bytes(changed))
    with pytest.raises(ValueError, match="damaged"):
        read_arrays(whole, "path")


def test_a_file_of_a_later_version_says_so(tmp_path, arrays, monkeypatch):
    monkeypatch.setattr(storage, "FORMAT", 2)
    write_arrays(tmp_path / "p", arrays, "path")
    monkeypatch.undo()
    with pytest.raises(ValueError, match="later version"):
        read_arrays(tmp_path / "p", "path")
