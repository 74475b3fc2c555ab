from __future__ import annotations

import json
import os
import warnings
import zipfile

import numpy as np
import pytest

import windage as wd
from tests.drifting import BUILDERS, MODELS, SPACE, T, as_arrays
from windage.errors import InputError, ModelError, StateError, WindageError
from windage.models import files


@pytest.mark.parametrize("name", BUILDERS)
def test_models_come_back_as_they_were(name, tmp_path):
    model = BUILDERS[name]()
    model.save(tmp_path / "model.npz")
    again = wd.load(tmp_path / "model.npz")
    assert (again.space, again.horizon, again.noise) == (model.space, model.horizon, model.noise)
    for t in (1, 2, 19, 20, 21, 37, T):
        assert again.at(t) == model.at(t)
    assert again.budgets().reward == pytest.approx(model.budgets().reward, abs=1e-12)


def test_names_noise_and_id_come_back(tmp_path):
    model = wd.envs.make("peril", noise=wd.Noise.beta(3.0))
    model.save(str(tmp_path / "model.npz"))
    again = wd.load(str(tmp_path / "model.npz"))
    assert again.space.action_names == (("a1", "a2"), ("b1", "b2"))
    assert again.noise == wd.Noise.beta(3.0)
    assert again.name == "peril-v0"


def test_large_sparse_models_stay_sparse(tmp_path):
    mdp = wd.envs.riverswim_mdp(3000)
    wd.DriftingMDP.stationary(mdp, horizon=10).save(tmp_path / "river.npz")
    again = wd.load(tmp_path / "river.npz").at(1)
    assert again == mdp
    assert not isinstance(again.transitions, np.ndarray)


def test_plain_arrays(tmp_path):
    r, p = as_arrays(BUILDERS["knots"]())
    np.savez(tmp_path / "own.npz", r=r, p=p, actions=[2, 1, 3])
    model = wd.load(tmp_path / "own.npz")
    assert model.space == SPACE
    assert model.horizon == T
    np.savez(tmp_path / "still.npz", r=r[0], p=p[0], actions=[2, 1, 3], horizon=77)
    assert wd.load(tmp_path / "still.npz").horizon == 77


def test_plain_arrays_that_are_no_model(tmp_path):
    r, p = as_arrays(BUILDERS["knots"]())
    p[39, 2, 1] *= 0.98
    np.savez(tmp_path / "own.npz", r=r, p=p, actions=[2, 1, 3])
    with pytest.raises(ModelError, match=r"p at t=40, s=2, a=1: row sums to 0\.98"):
        wd.load(tmp_path / "own.npz")
    np.savez(tmp_path / "half.npz", r=r)
    with pytest.raises(ModelError, match=r"half.npz: has the arrays \['r'\], not p"):
        wd.load(tmp_path / "half.npz")


def test_damaged_files_are_named_and_never_half_read(tmp_path):
    path = tmp_path / "model.npz"
    wd.envs.make("riverswim", horizon=100).save(path)
    whole = path.read_bytes()
    for n in range(0, len(whole), max(1, len(whole) // 40)):
        path.write_bytes(whole[:n])
        with pytest.raises(StateError, match="model.npz"):
            wd.load(path)
    rng = np.random.default_rng(0)
    for place in rng.integers(len(whole), size=60):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        path.write_bytes(damaged)
        try:  # a byte of no meaning (a date in the archive) may be any
            assert wd.load(path).at(7) == wd.envs.make("riverswim", horizon=100).at(7)
        except (StateError, ModelError):
            pass


@pytest.mark.parametrize("content", [b"", b"hello", b"PK\x03\x04"])
def test_files_that_are_something_else(tmp_path, content):
    (tmp_path / "x.npz").write_bytes(content)
    with pytest.raises(StateError, match="cannot be read as a model"):
        wd.load(tmp_path / "x.npz")


def test_pickles_are_never_opened(tmp_path):
    np.save(tmp_path / "p.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(StateError):
        wd.load(tmp_path / "p.npy")
    np.savez(tmp_path / "p.npz", r=np.array([{"a": 1}], dtype=object), p=np.zeros(1))
    with pytest.raises(StateError):
        wd.load(tmp_path / "p.npz")


def test_missing_files_and_folders(tmp_path):
    with pytest.raises(StateError, match="there is no such file"):
        wd.load(tmp_path / "nothing.npz")
    with pytest.raises(InputError, match="cannot be written"):
        wd.envs.make("peril").save(tmp_path / "no" / "such" / "folder.npz")


def test_a_failed_save_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    wd.envs.make("peril").save(path)
    before = path.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(InputError, match="No space left"):
        wd.envs.make("riverswim").save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.npz"]


def edited(path, change):
    """Write a file again with another header; `change` takes and returns it as plain data."""
    with np.load(path) as content:
        arrays = dict(content)
    header = change(json.loads(arrays["header"].tobytes()))
    arrays["header"] = np.frombuffer(json.dumps(header).encode(), dtype=np.uint8)
    np.savez(path, **arrays)


@pytest.mark.parametrize(
    ("version", "message"),
    [
        (9, "format 9, this version reads 1 and 2: it is newer. Fix: update windage"),
        (0, "format 0, this version reads 1 and 2. Fix: use the version of windage that wrote it"),
    ],
)
@pytest.mark.parametrize("kind", ["same fields", "other fields", "fewer fields", "other types"])
def test_another_format_is_refused_whatever_else_it_holds(tmp_path, version, message, kind):
    path = tmp_path / "model.npz"
    wd.envs.make("peril").save(path)
    changes = {
        "same fields": lambda header: header | {"windage_model": version},
        "other fields": lambda header: header | {"windage_model": version, "tensors": [1, 2]},
        "fewer fields": lambda header: {"windage_model": version},
        "other types": lambda header: header | {"windage_model": version, "actions": "many"},
    }
    edited(path, changes[kind])
    with pytest.raises(StateError, match=rf"model.npz: {message}"):
        wd.load(path)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (lambda header: header | {"colour": "red"}, "unknown field `colour`"),
        (lambda header: header | {"horizon": "long"}, "Expected `int`"),
        (lambda header: header | {"windage_model": "1"}, "windage_model"),
        (lambda header: {k: v for k, v in header.items() if k != "noise"}, "missing .*`noise`"),
        (lambda header: [header], "Expected `object`"),
        (lambda header: header | {"horizon": 0}, "horizon: 0 is not"),
        (lambda header: header | {"noise": "loud"}, "noise"),
        (lambda header: header | {"actions": [2, 3]}, "transitions of shape"),
        (lambda header: header | {"actions": [1, 1, 1, 1, 1, 1]}, "transitions of shape"),
        (lambda header: header | {"state_names": ["a"]}, "1 names for 3 states"),
        (lambda header: header | {"sparse": True}, r"rewards of shape .* not of shape \(0, 6\)"),
        (lambda header: header | {"kernel_schedule": {"kind": "Waltz"}}, "no known schedule"),
        (
            lambda header: header | {"kernel_schedule": {"kind": "Cosine", "cycles": "x"}},
            "cycles",
        ),
        (
            lambda header: (
                header | {"reward_schedule": {"kind": "Steps", "times": [5], "order": [0, 7]}}
            ),
            "speaks of 8 models",
        ),
    ],
)
def test_a_header_that_does_not_fit_is_refused(tmp_path, change, why):
    path = tmp_path / "model.npz"
    BUILDERS["cosine"]().save(path)
    edited(path, change)
    with pytest.raises(StateError, match=f"model.npz: cannot be read as a model .*{why}"):
        wd.load(path)


def drop(*names):
    return lambda arrays: {k: v for k, v in arrays.items() if k not in names}


def put(name, make):
    return lambda arrays: arrays | {name: make(arrays)}


def last(rows, end):
    return np.append(rows[:-1], end)


DENSE = {
    "fewer rewards": put("rewards", lambda a: a["rewards"][:1]),
    "more rewards": put("rewards", lambda a: np.concatenate([a["rewards"]] * 2)),
    "fewer kernels": put("transitions", lambda a: a["transitions"][:1]),
    "no rewards": drop("rewards"),
    "no kernels": drop("transitions"),
    "fewer pairs": put("rewards", lambda a: a["rewards"][:, 1:]),
    "flat": put("rewards", lambda a: a["rewards"].ravel()),
    "float32": put("transitions", lambda a: a["transitions"].astype(np.float32)),
    "integers": put("rewards", lambda a: np.zeros(a["rewards"].shape, dtype=int)),
    "one array more": put("extra", lambda a: np.zeros(3)),
    "rows": put("transitions", lambda a: 0.9 * a["transitions"]),
    "range": put("rewards", lambda a: a["rewards"] + 2),
}
SPARSE = {
    "fewer rewards": put("rewards", lambda a: a["rewards"][:1]),
    "a kernel less": drop("rows_1", "states_1", "probabilities_1"),
    "half a kernel": drop("states_1"),
    "no rows": drop("rows_1"),
    "a gap": drop("rows_0", "states_0", "probabilities_0"),
    "a row less": put("rows_0", lambda a: a["rows_0"][:-1]),
    "more states than cells": lambda a: (
        a | {name: np.zeros(10**5, a[name].dtype) for name in ("states_0", "probabilities_0")}
    ),
    "rows that end below 0": put("rows_0", lambda a: last(a["rows_0"], -100)),
    "rows that end early": put("rows_0", lambda a: last(a["rows_0"], a["rows_0"][-1] - 1)),
    "rows that end late": put("rows_0", lambda a: last(a["rows_0"], a["rows_0"][-1] + 1)),
    "rows that fall": put("rows_0", lambda a: np.roll(a["rows_0"], 2)),
    "states beyond": put("states_0", lambda a: a["states_0"] + 1),
    "states below": put("states_0", lambda a: a["states_0"] - 1),
    "a state less": put("states_0", lambda a: a["states_0"][:-1]),
    "other types": put("states_1", lambda a: a["states_1"].astype(float)),
}


@pytest.mark.parametrize(
    ("sparse", "name"), [*((False, name) for name in DENSE), *((True, name) for name in SPARSE)]
)
def test_a_file_whose_parts_do_not_fit_is_never_half_read(tmp_path, sparse, name):
    path = tmp_path / "model.npz"
    BUILDERS["sparse function" if sparse else "knots"]().save(path)
    with np.load(path) as content:
        arrays = dict(content)
    np.savez(path, **(SPARSE if sparse else DENSE)[name](arrays))
    with pytest.raises(StateError, match="model.npz: cannot be read as a model"):
        wd.load(path)
    np.savez(path, **arrays)
    assert wd.load(path).at(7) == BUILDERS["sparse function" if sparse else "knots"]().at(7)


def npy(shape, content, descr="<f8"):
    """The bytes of an array whose header says what it likes."""
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (-(len(header) + 11) % 64) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + content


@pytest.mark.parametrize(
    ("shape", "claims"),
    [
        ("(1099511627776, 2, 1)", 2**44),
        ("(3, 2, 1)", 48),
        ("(1, 2, 1)", 16),
        ("(-4, 2, -1)", 64),
        ("(4294967296, 4294967296, 1)", 2**67),
    ],
)
def test_headers_that_claim_another_size_are_refused_before_anything_is_allocated(
    tmp_path, shape, claims, monkeypatch
):
    path = tmp_path / "model.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("r.npy", npy(shape, bytes(32)))
        archive.writestr("p.npy", npy("(2, 2, 1)", bytes(32)))
    monkeypatch.setattr(np.lib.format, "read_array", None)  # would be the first to allocate
    with pytest.raises(StateError, match=rf"model.npz: .*r.npy claims {claims} bytes, .* has 32"):
        wd.load(path)


def test_archives_that_claim_too_much_are_refused_before_anything_is_allocated(tmp_path):
    path = tmp_path / "model.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("r.npy", npy("(2, 2, 1)", bytes(32)))
    data = bytearray(path.read_bytes())
    place = data.rindex(b"PK\x01\x02") + 24  # the unpacked size in the archive's directory
    data[place : place + 4] = (2**32 - 2).to_bytes(4, "little")
    path.write_bytes(data)
    with pytest.raises(WindageError, match="model.npz: "):
        wd.load(path)


@pytest.mark.parametrize(
    "entries",
    [
        [("r.npy", npy("(1,)", bytes(8))), ("r.npy", npy("(1,)", bytes(8)))],
        [("r.npy", npy("(1,)", bytes(8))), ("notes.txt", b"hello")],
        [("r.npy", b"hello")],
        [("r.npy", npy("(1,)", bytes(8), "|O"))],
        [("r.npy", b"\x93NUMPY\x09\x00" + npy("(1,)", bytes(8))[8:])],
        [("r.npy", npy("(1", bytes(8)))],
    ],
    ids=["twice", "text", "no array", "objects", "version", "header"],
)
def test_archives_of_something_else(tmp_path, entries):
    path = tmp_path / "model.npz"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # zipfile notices the double name itself
        with zipfile.ZipFile(path, "w") as archive:
            for name, content in entries:
                archive.writestr(name, content)
    with pytest.raises(StateError, match="model.npz: cannot be read as a model"):
        wd.load(path)


def test_plain_arrays_that_nobody_reads_are_named(tmp_path):
    r, p = as_arrays(BUILDERS["knots"]())
    np.savez(tmp_path / "own.npz", r=r, p=p, actoins=[2, 1, 3], rewards=r)
    with pytest.raises(
        ModelError, match=r"has the unknown arrays \['actoins', 'rewards'\].*r, p, actions, horizon"
    ):
        wd.load(tmp_path / "own.npz")


def test_the_horizon_of_a_drifting_file_is_its_number_of_times(tmp_path):
    r, p = as_arrays(BUILDERS["knots"]())
    np.savez(tmp_path / "own.npz", r=r, p=p, actions=[2, 1, 3], horizon=T)
    assert wd.load(tmp_path / "own.npz").horizon == T
    np.savez(tmp_path / "own.npz", r=r, p=p, actions=[2, 1, 3], horizon=T + 1)
    with pytest.raises(ModelError, match=f"horizon: {T + 1}, but r and p have {T} times"):
        wd.load(tmp_path / "own.npz")


@pytest.mark.parametrize("still", [True, False])
def test_a_file_is_not_told_to_pass_what_it_cannot(tmp_path, still):
    r, p = as_arrays(BUILDERS["knots"]())
    p[0, 2, 1] *= 0.98
    r, p = (r[0], p[0]) if still else (r, p)
    np.savez(tmp_path / "own.npz", r=r, p=p, actions=[2, 1, 3])
    with pytest.raises(ModelError, match=r"s=2, a=1: row sums to 0\.98") as caught:
        wd.load(tmp_path / "own.npz")
    assert caught.value.field == "p"
    assert "normalize" not in str(caught.value)


def test_files_keep_to_the_umask(tmp_path):
    before = os.umask(0o027)
    try:
        wd.envs.make("peril").save(tmp_path / "model.npz")
    finally:
        os.umask(before)
    assert (tmp_path / "model.npz").stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize("path", [5, "", None])
def test_names_of_files_are_names(path):
    with pytest.raises(InputError, match="path: .* is not the name of a file"):
        wd.load(path)
    with pytest.raises(InputError, match="path: .* is not the name of a file"):
        wd.envs.make("peril").save(path)


def test_numbers_of_numpy_in_a_schedule_are_written(tmp_path):
    schedule = wd.schedules.RandomWalk(np.int64(3), moves=np.int32(9), size=np.float64(0.25))
    model = wd.DriftingMDP.blend(MODELS[:2], schedule, horizon=20)
    model.save(tmp_path / "own.npz")
    assert all(wd.load(tmp_path / "own.npz").at(t) == model.at(t) for t in range(1, 21))


class Cosine(wd.schedules.TwoModelSchedule):
    """A schedule of the user's own with the name of one of the library's."""

    def position(self, times, horizon):
        return np.where(times > 7, 0.25, 0.75)

    def stops(self, horizon):
        return np.array([1, 7, 8, horizon])


def test_a_schedule_of_ones_own_is_written_as_the_models_it_makes(tmp_path):
    model = wd.DriftingMDP.blend(MODELS[:2], Cosine(), horizon=20)
    model.save(tmp_path / "own.npz")
    again = wd.load(tmp_path / "own.npz")
    assert all(again.at(t) == model.at(t) for t in range(1, 21))


@pytest.mark.parametrize("horizon", [[1, 2], 2.5, "abc"])
def test_horizons_of_still_models_are_checked(tmp_path, horizon):
    r, p = as_arrays(BUILDERS["knots"]())
    np.savez(tmp_path / "still.npz", r=r[0], p=p[0], actions=[2, 1, 3], horizon=horizon)
    with pytest.raises(ModelError, match="horizon: .* is not an integer"):
        wd.load(tmp_path / "still.npz")


def bomb(path, **shapes):
    """Write an archive of zeros: a few kilobytes that unpack to all that the shapes claim."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, shape in shapes.items():
            content = bytes(8 * int(np.prod(shape, dtype=np.int64)))
            archive.writestr(f"{name}.npy", npy(str(tuple(shape)), content))


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"r": (9, 2, 2), "p": (3000, 1000)}, r"shapes \(9, 2, 2\) and \(3000, 1000\) do not fit"),
        ({"r": (2, 2), "p": (2, 2, 10**6)}, "1000000 next states for 2 states"),
        ({"r": (10**6, 2), "p": (2, 2, 2)}, r"shapes \(1000000, 2\) and \(2, 2, 2\) do not fit"),
        ({"r": (2, 2), "p": (2, 2, 2), "actions": (10**6,)}, r"actions: has shape \(1000000,\)"),
        ({"r": (2, 2), "p": (2, 2, 2), "horizon": (10**6,)}, r"horizon: .*shape \(1000000,\)"),
    ],
)
def test_shapes_that_do_not_fit_are_refused_before_anything_is_unpacked(
    tmp_path, shapes, message, monkeypatch
):
    bomb(tmp_path / "bomb.npz", **shapes)
    monkeypatch.setattr(np.lib.format, "read_array", None)
    with pytest.raises(ModelError, match=message):
        wd.load(tmp_path / "bomb.npz")


@pytest.mark.parametrize("name", ["dense", "sparse", "structured"])
def test_own_files_whose_shapes_do_not_fit_are_refused_before_they_are_unpacked(
    tmp_path, name, monkeypatch
):
    """Of each array but the texts in turn: a million rows of zeros where a few were written."""
    path = tmp_path / "model.npz"
    if name == "structured":
        wd.envs.make("inventory", horizon=50).save(path)
    else:
        BUILDERS["sparse function" if name == "sparse" else "knots"]().save(path)
    with np.load(path) as content:
        arrays = dict(content)
    unpacked, read = [], np.lib.format.read_array

    def watched(content, **options):
        unpacked.append(content.name)
        return read(content, **options)

    texts = {"header", "structure"}
    for one in sorted(set(arrays) - texts, key=lambda name: (name[-1] != "0", name))[:4]:
        zeros = np.zeros((10**6, *arrays[one].shape), arrays[one].dtype)
        np.savez_compressed(path, **arrays | {one: zeros[: 10**6 // zeros[0].size]})
        with monkeypatch.context() as patch:
            patch.setattr(np.lib.format, "read_array", watched)
            with pytest.raises(StateError, match=rf"{one} of shape .* not of shape"):
                wd.load(path)
    assert set(unpacked) <= {f"{text}.npy" for text in texts}


def test_a_header_of_gigabytes_is_not_unpacked(tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    np.savez_compressed(path, header=np.full(1000, 32, np.uint8))
    monkeypatch.setattr(files, "_LONGEST_TEXT", 999)
    with pytest.raises(StateError, match="header has 1000 bytes of text, more than 999"):
        wd.load(path)


def test_archives_that_numpy_does_not_write(tmp_path):
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("r.npy", npy("(1,)", bytes(8)))
    with pytest.raises(StateError, match="packed in a way that NumPy does not pack"):
        wd.load(tmp_path / "x.npz")
