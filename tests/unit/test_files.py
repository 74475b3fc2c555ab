from __future__ import annotations

import os
import zipfile

import numpy as np
import pytest

import windage as wd
from tests.unit.test_drift import BUILDERS, MODELS, SPACE, T, as_arrays
from windage.errors import ModelError, StateError


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
    with pytest.raises(StateError, match="cannot be written"):
        wd.envs.make("peril").save(tmp_path / "no" / "such" / "folder.npz")


def test_a_failed_save_leaves_the_old_file_and_no_litter(tmp_path, monkeypatch):
    path = tmp_path / "model.npz"
    wd.envs.make("peril").save(path)
    before = path.read_bytes()

    def full(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StateError, match="No space left"):
        wd.envs.make("riverswim").save(path)
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["model.npz"]


def test_another_format_is_refused(tmp_path):
    path = tmp_path / "model.npz"
    wd.envs.make("peril").save(path)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["header.npy"] = parts["header.npy"].replace(b'"windage_model":1', b'"windage_model":9')
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
    with pytest.raises(StateError, match="format 9, this version reads 1"):
        wd.load(path)


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
