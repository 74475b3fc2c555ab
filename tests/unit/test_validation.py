from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.sparse import (
    bsr_array,
    coo_array,
    csc_array,
    csr_array,
    dia_array,
    dok_array,
    lil_array,
)

from windage import validation
from windage.errors import InputError, ModelError


@pytest.mark.parametrize("value", [3, np.int32(3), np.uint64(3), np.array(3)])
def test_whole_numbers_of_all_kinds(value):
    assert validation.as_integer(value, "n", low=0, high=3) == 3
    assert type(validation.as_integer(value, "n")) is int


@pytest.mark.parametrize("value", [True, np.True_, 3.0, "3", None, [3], np.nan])
def test_what_is_no_integer(value):
    with pytest.raises(InputError, match="n: .*integer from 0 to 9"):
        validation.as_integer(value, "n", low=0, high=9)


@pytest.mark.parametrize("value", [-1, 10])
def test_integers_out_of_range(value):
    with pytest.raises(InputError, match=f"n: {value} is not an integer from 0 to 9"):
        validation.as_integer(value, "n", low=0, high=9)


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.1, 1.0, "0.5", True, None, [1, 2]])
def test_reals(value):
    with pytest.raises(InputError, match=r"delta: .*\[0, 1\)"):
        validation.as_real(value, "delta", low=0, high=1, open_high=True)


def test_real_numbers_pass_unchanged():
    assert validation.as_real(0.1, "x") == 0.1
    assert validation.as_real(np.float32(0.5), "x", low=0.5) == 0.5


def test_integer_lists():
    assert validation.as_integers([1, 2], "k").dtype == np.int64
    assert validation.as_integers([], "k").size == 0
    with pytest.raises(InputError, match=r"k\[1\]: -2 is out of range"):
        validation.as_integers([1, -2], "k", low=0)
    for wrong in ([1.5, 2.0], ["a"], [[1], [2]]):
        with pytest.raises(InputError, match="k: "):
            validation.as_integers(wrong, "k")


def test_choices_suggest_the_nearest():
    with pytest.raises(InputError, match="did you mean 'bernoulli'"):
        validation.as_choice("bernuli", "noise", ["bernoulli", "none"])
    with pytest.raises(InputError, match="one of: a, b"):
        validation.as_choice(7, "x", ["a", "b"])


@pytest.mark.parametrize("value", [0, -1, 2**40, 1.0, True])
def test_horizons(value):
    with pytest.raises(ModelError, match="horizon"):
        validation.as_horizon(value)


def test_memory_is_estimated_before_it_is_taken():
    with pytest.raises(ModelError, match=r"x: would need about 9\.1 TiB of memory.*Fix: less\."):
        validation.require_memory(1e13, "x", fix="less")
    validation.require_memory(1e3, "x", fix="less")


def test_what_is_small_is_taken_without_asking(monkeypatch):
    """Learners that are made by the thousand would open a file of the system's each time."""
    monkeypatch.setattr(validation, "_free_memory", lambda: 0.0)
    validation.require_memory(2**23, "x", fix="less")
    with pytest.raises(ModelError, match=r"would need about 8\.0 MiB of memory, 0 bytes are free"):
        validation.require_memory(2**23 + 1, "x", fix="less")


@pytest.mark.parametrize(
    ("size", "words"),
    [(0, "0 bytes"), (1023, "1023 bytes"), (2048, "2.0 KiB"), (2**50, "1024.0 TiB")],
)
def test_sizes_in_words(size, words):
    assert validation.bytes_in_words(size) == words


@pytest.mark.parametrize("name", ["", "  ", "a\nb", 7, None])
def test_names(name):
    with pytest.raises(InputError, match="non-empty string"):
        validation.as_name(name, "state_names[0]")


def explained(error):
    """A person can act on it: what is wrong, and what to do."""
    return bool(error.value.field and error.value.problem and error.value.fix)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([True, 2], r"k\[0\]: True is a boolean"),
        ([1, np.False_], r"k\[1\]: .*False.* is a boolean"),
        (5, "k: 5 is not a list"),
        (None, "k: None is not a list"),
        ("12", "k: '12' is not a list"),
        ({1: 2}, "k: {1: 2} is not a list"),
        ({3, 1}, "is not a list"),
        ([[1, 2], [3]], r"k: \[\[1, 2\], \[3\]\] has uneven rows"),
        ([[1, 2], [3, 4]], "k: has 2 dimensions"),
        (np.array(3), "k: has 0 dimensions"),
        ([10**30], "k: holds object values"),
        (np.array([2**63], dtype=np.uint64), r"k\[0\]: 9223372036854775808 is out of range"),
        (range(10**30), "would need about"),
        (range(10**30, 10**30 + 1), "is not a list"),
        ([None], "k: holds object"),
        (np.array([1, np.nan]), "k: holds float64"),
    ],
)
def test_what_is_no_list_of_integers(value, message):
    with pytest.raises((InputError, ModelError), match=message) as error:
        validation.as_integers(value, "k")
    assert explained(error)


def test_lists_of_integers_of_all_kinds():
    for values in ([3, 4], (3, 4), range(3, 5), iter([3, 4]), np.array([3, 4], dtype=np.uint8)):
        found = validation.as_integers(values, "k", low=3, high=4)
        assert (found.tolist(), found.dtype) == ([3, 4], np.int64)
    given = np.array([3, 4])
    validation.as_integers(given, "k")[0] = 9
    assert given[0] == 3
    assert validation.as_integers(np.array([2**63 - 1], dtype=np.uint64), "k")[0] == 2**63 - 1


@pytest.mark.parametrize(
    "value",
    [10**400, 1j, np.complex128(1), "1", b"1", bytearray(b"1"), np.str_("1"), np.True_,
     np.array([1.0]), np.array("1"), np.array(1j), np.timedelta64(3, "s"), object()],
)  # fmt: skip
def test_what_is_no_real_number(value):
    with pytest.raises(InputError, match="^x: ") as error:
        validation.as_real(value, "x")
    assert explained(error)


@pytest.mark.parametrize("value", [0.5, Fraction(1, 2), Decimal("0.5"), np.float16(0.5)])
def test_real_numbers_of_all_kinds(value):
    found = validation.as_real(value, "x")
    assert (found, type(found)) == (0.5, float)
    assert validation.as_real(np.array(value, dtype=float), "x") == 0.5


@pytest.mark.parametrize(
    "value",
    [10**5000, -(10**5000), "x" * 10**6, [0] * 10**6],
    ids=["large", "low", "string", "list"],
)
def test_messages_stay_short(value):
    for check in (validation.as_integer, validation.as_real, validation.as_seed):
        with pytest.raises(InputError) as error:
            check(value, "x") if check is not validation.as_integer else check(
                value, "x", high=1, low=0
            )
        assert len(str(error.value)) < 300
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1j, 0], "of complex128 values"),
        (np.array([1 + 0j]), "of complex128 values"),
        (["0.5", "0.5"], "of <U3 values"),
        (np.array([b"1"]), "of |S1 values"),
        ([0.5, None], "of object values"),
        (np.array([0.5], dtype=object), "of object values"),
        ([Fraction(1, 2)], "of object values"),
        ([10**400], "of object values"),
        (np.array(["2020-01-01"], dtype="M8[D]"), "of datetime64"),
        ([[1, 0], [1]], "is not an array of numbers"),
        (np.ma.masked_array([0.5, 0.5], mask=[False, True]), "has masked entries"),
        (csr_array(np.eye(2)), "of object values"),
    ],
)
def test_what_is_no_array_of_numbers(values, message):
    with pytest.raises(ModelError, match=f"^r: .*{message}".replace("|", r"\|")) as error:
        validation.as_floats(values, "r")
    assert explained(error)


def test_arrays_of_numbers_are_copies():
    given = np.array([0.25, 0.75])
    found = validation.as_floats(given, "r")
    found[0] = 9
    assert given[0] == 0.25
    for kind in (bool, np.int8, np.uint64, np.float32, np.longdouble):
        assert validation.as_floats(np.array([1, 0], dtype=kind), "r").tolist() == [1.0, 0.0]
    plain = validation.as_floats(np.ma.masked_array([0.5, 0.5], mask=False), "r")
    assert type(plain) is np.ndarray


def test_sparse_matrices_are_brought_in_order():
    given = csr_array(
        (np.array([0.5, 0.25, 0.5, 0.25]), np.array([1, 0, 1, 0]), np.array([0, 3, 4])),
        shape=(2, 2),
    )
    given.has_canonical_format = given.has_sorted_indices = True  # it says so, and is wrong
    found = validation.as_csr(given, "p")
    assert (found.indices.tolist(), found.data.tolist()) == ([0, 1, 0], [0.25, 1.0, 0.25])
    assert given.data.tolist() == [0.5, 0.25, 0.5, 0.25]
    assert given.indices.tolist() == [1, 0, 1, 0]
    broken = csr_array(np.eye(2))
    broken.indices[0] = 7
    for wrong, message in (
        (broken, r"at indices\[0\]: 7 is not an integer"),
        (coo_array(np.array([[1j]])), "holds complex128"),
    ):
        with pytest.raises(ModelError, match=f"^p:? {message}") as error:
            validation.as_csr(wrong, "p")
        assert explained(error)


def test_frozen_rows_have_no_way_in():
    rows = validation.FrozenRows.of(csr_array(np.array([[0.5, 0.5], [0.0, 1.0]])))
    before = rows.toarray().tolist()

    def assign(place):
        rows[place] = 0.25

    def scale():
        nonlocal rows
        rows *= 2

    for change in (
        lambda: assign((0, 0)),
        lambda: assign((1, 0)),  # an entry that is not there yet
        lambda: rows.data.fill(0),
        lambda: rows.setdiag(0.5, 1),
        lambda: rows.resize(3, 3),
        lambda: setattr(rows, "data", rows.data * 2),
        lambda: setattr(rows, "indices", rows.indices),
        scale,
    ):
        with pytest.raises((ValueError, AttributeError), match="read-only|is fixed"):
            _quietly(change)
    assert rows.toarray().tolist() == before
    assert validation.FrozenRows.of(rows) is rows
    for free in (rows + rows, 2 * rows, rows.copy(), rows[[0]]):
        free.data[0] = 7.0
    assert rows.toarray().tolist() == before


def _quietly(change):
    """SciPy first warns that new entries are dear."""
    import warnings

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        change()


def test_frozen_rows_have_every_entry_once_and_none_zero():
    given = csr_array(
        (np.array([0.5, 0.0, 0.5, 1.0]), np.array([1, 0, 1, 0]), np.array([0, 3, 4])), shape=(2, 2)
    )
    found = validation.FrozenRows.of(given)
    assert (found.indices.tolist(), found.data.tolist()) == ([1, 0], [1.0, 1.0])
    assert given.data.tolist() == [0.5, 0.0, 0.5, 1.0]
    assert given.data.flags.writeable


@pytest.mark.parametrize("value", [0, -1, True, 1.0, 2**40, 10**400])
def test_sizes(value):
    with pytest.raises(InputError, match="states: .*integer from 1 to") as error:
        validation.as_size(value, "states")
    assert explained(error)


def test_seeds_have_an_end():
    assert validation.as_seed(2**4096 - 1) == 2**4096 - 1
    with pytest.raises(InputError, match="seed: has 4097 bits"):
        validation.as_seed(2**4096)


FORMATS = [bsr_array, coo_array, csc_array, csr_array, dia_array, dok_array, lil_array]


@pytest.mark.parametrize("kind", FORMATS, ids=lambda kind: kind.__name__)
def test_sparse_matrices_of_all_kinds(kind):
    rows = np.array([[0.25, 0.75], [0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    assert (validation.as_csr(kind(rows), "p").toarray() == rows).all()


def parts(**changes):
    """A change of the parts of a matrix: those named get other entries, or are others."""

    def change(rows):
        for name, value in changes.items():
            if isinstance(value, tuple):
                setattr(rows, name, getattr(rows, name).copy())
                getattr(rows, name)[value[0]] = value[1]
            else:
                setattr(rows, name, value)
        return rows

    return change


def no_coords(rows):
    rows.coords[0][1] = -7
    return rows


HOSTILE = [
    (csr_array, parts(indptr=(-1, -100)), r"p at indptr\[3\]: falls from 2 to -100"),
    (csr_array, parts(indptr=(1, 10**6)), r"p at indptr\[2\]: falls from 1000000 to 2"),
    (csr_array, parts(indptr=(0, 1)), r"p at indptr\[0\]: 1 is not 0"),
    (csr_array, parts(indptr=(-1, 10**6)), r"p at indptr\[3\]: 1000000 is not 3, the entries"),
    (csr_array, parts(indptr=np.array([0, 3])), r"p at indptr: has shape \(2,\), not \(4,\)"),
    (csr_array, parts(indptr=np.zeros(4)), "p: indptr holds float64 values"),
    (csr_array, parts(indptr=np.zeros(4, np.uint64)), "p: indptr holds uint64 values"),
    (csr_array, parts(indptr=[0, 1, 2, 3]), "p: indptr holds list values"),
    (csr_array, parts(indices=(1, -1)), r"p at indices\[1\]: -1 is not an integer from 0 to 2"),
    (csr_array, parts(indices=(1, 3)), r"p at indices\[1\]: 3 is not an integer from 0 to 2"),
    (csr_array, parts(indices=np.zeros(2, int)), r"p at indices: has shape \(2,\), data \(3,\)"),
    (csr_array, parts(data=np.ones(9)), r"p at indices: has shape \(3,\), data \(9,\)"),
    (csc_array, parts(indptr=(1, 10**6)), r"p at indptr\[2\]: falls"),
    (csc_array, parts(indices=(1, 10**6)), r"p at indices\[1\]: 1000000 is not"),
    (bsr_array, parts(indptr=(1, 10**6)), r"p at indptr\[2\]: falls"),
    (bsr_array, parts(data=np.ones((1, 1, 1))), r"p at indices: has shape \(3,\)"),
    (bsr_array, parts(data=np.ones(3)), "p: is no sparse matrix"),
    (coo_array, no_coords, r"p at rows\[1\]: -7 is not an integer from 0 to 2"),
    (coo_array, parts(data=np.ones(2)), "p: has 3 rows and 2 values"),
    (dia_array, parts(offsets=np.arange(10**5)), "p: has 1 diagonals and 100000 offsets"),
    (lil_array, parts(data=(0, [0.1] * 10**5)), "p: has rows of uneven parts"),
    (lil_array, parts(rows=(0, [10**6])), r"p at indices\[0\]: 1000000 is not"),
    (lil_array, parts(rows=(0, [-3])), r"p at indices\[0\]: -3 is not"),
]


@pytest.mark.parametrize(("kind", "change", "message"), HOSTILE)
def test_sparse_matrices_whose_parts_do_not_fit(kind, change, message):
    """Compiled code would follow them out of their arrays: no two of these died alike."""
    with pytest.raises(ModelError, match=f"^{message}") as error:
        validation.as_csr(change(kind(np.eye(3))), "p")
    assert explained(error)


def test_sparse_matrices_that_fit_no_memory():
    with pytest.raises(ModelError, match="p: would need about"):
        validation.as_csr(coo_array((2**50, 2)), "p")
    with pytest.raises(ModelError, match="p: has 1 dimensions"):
        validation.as_csr(coo_array(np.ones(3)), "p")
