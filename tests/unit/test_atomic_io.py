"""Files appear whole, with the permissions people expect, and leave nothing else behind."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from windage import atomic_io
from windage.atomic_io import as_path, make_folder, write_whole
from windage.errors import InputError


def mode(path):
    return stat.S_IMODE(path.stat().st_mode)


def put(content=b"new"):
    return lambda file: file.write(content)


@pytest.fixture
def umask():
    """Sets the umask of the process and puts the old one back."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


@pytest.mark.parametrize(("mask", "expected"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_new_file_has_the_permissions_of_the_process(tmp_path, umask, mask, expected):
    umask(mask)
    write_whole(tmp_path / "a", put())
    assert mode(tmp_path / "a") == expected
    with (tmp_path / "b").open("w"):  # what everybody else's files get
        pass
    assert mode(tmp_path / "b") == expected


@pytest.mark.parametrize("kept", [0o600, 0o640, 0o666])
def test_a_replaced_file_keeps_its_permissions(tmp_path, umask, kept):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(kept)
    write_whole(path, put())
    assert (path.read_bytes(), mode(path)) == (b"new", kept)


def test_links_are_followed(tmp_path):
    (tmp_path / "far").mkdir()
    (tmp_path / "far" / "real").write_bytes(b"old")
    (tmp_path / "link").symlink_to(tmp_path / "far" / "real")
    write_whole(tmp_path / "link", put())
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "far" / "real").read_bytes() == b"new"
    assert os.listdir(tmp_path / "far") == ["real"]


def test_names_as_long_as_they_may_be(tmp_path):
    path = tmp_path / ("ä" * 125 + ".npz")
    write_whole(path, put())
    assert path.read_bytes() == b"new"


def test_a_temporary_file_of_somebody_else_is_left_alone(tmp_path):
    theirs = tmp_path / f"a.{os.getpid()}-0.tmp"
    theirs.write_bytes(b"theirs")
    write_whole(tmp_path / "a", put())
    assert theirs.read_bytes() == b"theirs"
    assert sorted(os.listdir(tmp_path)) == ["a", theirs.name]


class Cut(BaseException):
    """Like Ctrl-C."""


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), Cut(), KeyError("x")])
def test_a_write_that_fails_halfway_changes_nothing(tmp_path, error):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def half(file):
        file.write(b"half")
        file.flush()
        raise error

    expected = InputError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected):
        write_whole(path, half)
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a"]


def test_a_disk_that_can_neither_write_nor_delete_ends_in_one_error(tmp_path, monkeypatch):
    (tmp_path / "a").write_bytes(b"old")

    def refuse(*_, **__):
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    for module, name in ((os, "fsync"), (Path, "unlink")):
        monkeypatch.setattr(module, name, refuse)
    with pytest.raises(InputError, match="Read-only file system"):
        write_whole(tmp_path / "a", put())
    assert (tmp_path / "a").read_bytes() == b"old"


def test_until_the_last_byte_a_reader_finds_the_old_file(tmp_path):
    path, seen = tmp_path / "a", []
    path.write_bytes(b"old")

    def slowly(file):
        for _ in range(3):
            file.write(b"x" * 10_000)
            file.flush()
            seen.append(path.read_bytes())

    write_whole(path, slowly)
    assert seen == [b"old"] * 3
    assert path.read_bytes() == b"x" * 30_000


def test_what_is_written_is_on_the_disk_before_it_has_its_name(tmp_path, monkeypatch):
    done, real = [], os.fsync

    def fsync(handle):
        kind = "folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else "file"
        done.append((kind, (tmp_path / "a").exists()))
        real(handle)

    monkeypatch.setattr(os, "fsync", fsync)
    write_whole(tmp_path / "a", put())
    assert done == [("file", False), ("folder", True)]


def test_who_reads_the_old_file_reads_it_to_its_end(tmp_path):
    (tmp_path / "a").write_bytes(b"old")
    with (tmp_path / "a").open("rb") as reader:
        write_whole(tmp_path / "a", put())
        assert reader.read() == b"old"  # the new one is another file, and took its name
    assert (tmp_path / "a").read_bytes() == b"new"


def test_folders_are_made_on_request_only(tmp_path):
    with pytest.raises(InputError, match=r"no/a: cannot be written \(No such file or directory\)"):
        write_whole(tmp_path / "no" / "a", put())
    write_whole(tmp_path / "yes" / "b" / "a", put(), make_folder=True)
    assert (tmp_path / "yes" / "b" / "a").read_bytes() == b"new"


def test_what_is_no_file_is_refused(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "taken").write_bytes(b"")
    os.mkfifo(tmp_path / "pipe")
    for name in ("folder", "pipe"):
        with pytest.raises(InputError, match=f"{name}: cannot be written .it is a folder or a dev"):
            write_whole(tmp_path / name, put())
    with pytest.raises(InputError, match="cannot be written .its folder is a file"):
        write_whole(tmp_path / "taken" / "a", put())
    (tmp_path / "ring").symlink_to(tmp_path / "ring")
    with pytest.raises(InputError, match="ring: cannot be written"):
        write_whole(tmp_path / "ring", put())


@pytest.mark.parametrize("path", [5, None, "", "a\0b", b"bytes", ["a"]])
def test_what_is_no_name_is_refused(path):
    with pytest.raises(InputError, match="path: .* is not the name of a file"):
        as_path(path)
    with pytest.raises(InputError, match="path: "):
        write_whole(path, put())


def test_names_and_paths_are_names():
    assert as_path("a") == as_path(Path("a")) == Path("a")


def test_a_full_disk_is_told_from_a_folder_that_is_not_ours(tmp_path, monkeypatch):
    def full(file):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with pytest.raises(InputError, match="No space left on device.*make room on the disk"):
        write_whole(tmp_path / "a", full)
    assert not list(tmp_path.iterdir())


def test_folders_are_made_with_those_above_and_settled(tmp_path, monkeypatch):
    settled = []
    monkeypatch.setattr(atomic_io, "_settle", settled.append)
    make_folder(tmp_path / "a" / "b")
    assert (tmp_path / "a" / "b").is_dir()
    assert settled == [tmp_path, tmp_path / "a"]
    make_folder(tmp_path / "a" / "b")
    assert len(settled) == 2
    (tmp_path / "file").touch()
    for target in (tmp_path / "file" / "c", tmp_path / "file"):
        with pytest.raises(InputError, match="its folder is a file"):
            make_folder(target)
