from __future__ import annotations

import copy
import pickle

import pytest

from windage import errors

KINDS = [kind for name in errors.__all__ if isinstance(kind := getattr(errors, name), type)]


@pytest.mark.parametrize("kind", [kind for kind in KINDS if not issubclass(kind, Warning)])
def test_every_error_is_a_value_error_with_its_fields(kind):
    err = kind("is 3", field="x", where="t=2", fix="pass 4")
    assert isinstance(err, ValueError)
    assert isinstance(err, errors.WindageError)
    assert str(err) == "x at t=2: is 3. Fix: pass 4."
    assert (err.problem, err.field, err.where, err.fix) == ("is 3", "x", "t=2", "pass 4")


def test_errors_survive_the_trip_between_processes():
    err = errors.ModelError("is 3", field="x", where="t=2", fix="pass 4")
    for twin in (copy.copy(err), pickle.loads(pickle.dumps(err))):
        assert type(twin) is errors.ModelError
        assert str(twin) == str(err)
        assert twin.where == "t=2"


def test_warnings_are_warnings():
    assert issubclass(errors.GuaranteeWarning, UserWarning)
    assert issubclass(errors.ParameterWarning, UserWarning)


def test_a_question_needs_no_full_stop():
    asked = errors.InputError("no such key; did you mean horizon?", field="horizn", fix="one of: a")
    assert str(asked) == "horizn: no such key; did you mean horizon? Fix: one of: a."
