"""Logs from files: what is read, and what cannot be used, by line and column."""

from __future__ import annotations

import csv
import io

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import windage as wd
from windage.logs import reader as scanning
from windage.logs.columns import Amounts
from windage.logs.reader import lines_of, scan

HEADER = b"t,state,action,reward,next_state"


def lines(n=40, start=1):
    return [
        b"%d,%d,%d,%.2f,%d" % (t, t % 3, t % 2, t / 100, (t + 1) % 3)
        for t in range(start, start + n)
    ]


def written(tmp_path, rows, end=b"\n", name="log.csv", last=True):
    path = tmp_path / name
    path.write_bytes(end.join(rows) + (end if last else b""))
    return path


def columns(log):
    states = log.space.state_of[log.pairs]
    return (
        [log.state_labels[s] for s in states],
        [
            int(log.space.action_name(s, a))
            for s, a in zip(states, log.space.action_of[log.pairs], strict=True)
        ],
        log.rewards.tolist(),
        [log.state_labels[s] for s in log.nexts],
    )


def expected(n=40):
    return (
        [t % 3 for t in range(1, n + 1)],
        [t % 2 for t in range(1, n + 1)],
        [round(t / 100, 2) for t in range(1, n + 1)],
        [(t + 1) % 3 for t in range(1, n + 1)],
    )


@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("last", [True, False])
def test_a_plain_file_is_read_whatever_ends_its_lines(tmp_path, end, mark, last):
    log = wd.logs.read_log(written(tmp_path, [mark + HEADER, *lines()], end, last=last))
    assert columns(log) == expected()
    assert (log.steps, log.lines, log.unusable_count, log.gaps()) == (40, 40, 0, [])
    assert log.when(7) == "7"
    assert log.breaks() == 0


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_other_separators_are_found(tmp_path, mark):
    rows = [row.replace(b",", mark.encode()) for row in (HEADER, *lines())]
    assert columns(wd.logs.read_log(written(tmp_path, rows))) == expected()


def test_parquet_holds_the_same(tmp_path):
    data = expected()
    frame = pl.DataFrame(
        {"t": range(1, 41), "state": data[0], "action": data[1], "reward": data[2],
         "next_state": [float(s) for s in data[3]]}
    )  # fmt: skip
    frame.write_parquet(tmp_path / "log.parquet")
    log = wd.logs.read_log(tmp_path / "log.parquet")
    assert columns(log) == expected()


def test_columns_are_mapped_and_others_ignored(tmp_path):
    rows = [b"when,note,s,a,profit,s2"]
    rows += [
        b",".join([row.split(b",")[0], b'"x, ""y"""', *row.split(b",")[1:]]) for row in lines()
    ]
    named = {"t": "when", "state": "s", "action": "a", "reward": "profit", "next_state": "s2"}
    assert columns(wd.logs.read_log(written(tmp_path, rows), columns=named)) == expected()


def test_unusable_lines_are_named_by_line_and_column(tmp_path):
    rows = [HEADER + b",note", *(row + b"," for row in lines())]
    rows[5] = b'5,2,1,x,0,"two\nlines"'  # line 6; what follows is one line further down
    rows[7] = b""
    rows[9] = b"9,0,1"
    rows[11] = b"11,2,1,0.11,0,a,b"
    rows[13] = b"13,\xff,1,0.13,2,"
    rows[15] = b"15,0,1,1e400,1,"
    rows[17] = b"3,2,1,0.17,0,"
    rows[19] = b"19,cold,1,0.19,2,"
    rows[21] = b"21,0,1,nan,1,"
    rows[23] = b"?,2,1,0.23,0,"
    log = wd.logs.read_log(written(tmp_path, rows, b"\r\n"))
    assert [tuple(one) for one in log.unusable] == [
        (6, "reward", "'x' is not a number"),
        (9, "state", "it is empty"),
        (11, "next_state", "it is empty"),
        (13, "state", "there are more cells than the header names"),
        (15, "state", "'\ufffd' is not UTF-8"),
        (17, "reward", "'1e400' is not a number"),
        (19, "t", "'3' does not come after the lines before"),
        (21, "state", "'cold' is not an integer, as others are"),
        (23, "reward", "'nan' is not a number"),
        (25, "t", "'?' is no time, as others are"),
    ]
    assert log.unusable_count == 10
    assert log.steps == 30
    gap = log.gaps()[0]
    assert (gap.after, gap.before, gap.missing) == ("4", "6", 1.0)
    said = " ".join(log.inspect(draws=5).words())
    assert "10 lines cannot be used: 3 like line 6, reward: 'x' is not a number; 1 like" in said


def test_every_reason_is_counted(tmp_path, monkeypatch):
    """All lines, beyond those that are named one by one, and in batches of their own."""
    monkeypatch.setattr(scanning, "_KEPT", 2)
    monkeypatch.setattr(scanning, "_BATCH", 16)
    rows = [HEADER, *lines(99)]
    for k in range(50, 90, 3):
        rows[k] = rows[k].replace(b",0.", b",?0.")
    rows[60], rows[71], rows[94] = b"60,,0,0.6,1", b"70,2,0,0.7,0", b"94,0,0,,1"
    log = wd.logs.read_log(written(tmp_path, rows))
    assert [(one.lines, *one.first) for one in log.reasons] == [
        (13, 51, "reward", "'?0.50' is not a number"),
        (1, 61, "state", "it is empty"),
        (1, 72, "t", "'70' does not come after the lines before"),
        (1, 95, "reward", "it is empty"),
    ]
    assert (log.unusable_count, len(log.unusable), log.steps) == (16, 2, 83)


def of_entities(rows):
    """Each row with the entity k, k from 0 to 2, whose reward is k more."""
    for row in rows:
        t, s, a, r, n = row.split(b",")
        yield [b"%s,sku %d,%s,%s,%.2f,%s" % (t, k, s, a, float(r) + k, n) for k in range(3)]


SEVERAL = b"t,sku,state,action,reward,next_state"


@pytest.mark.parametrize("stacked", [False, True])
@pytest.mark.parametrize("chained", [True, False])
@pytest.mark.parametrize("timed", [True, False])
@pytest.mark.parametrize("batch", [7, 1 << 18])
def test_several_entities_share_a_file(tmp_path, monkeypatch, stacked, chained, timed, batch):
    """Day by day or one after another, the log is that of every entity's steps by time."""
    monkeypatch.setattr(scanning, "_BATCH", batch)
    table = list(of_entities(lines()))
    rows = [row for of in (zip(*table, strict=True) if stacked else table) for row in of]
    first, last = 0 if timed else 1, 6 if chained else 5
    path = written(tmp_path, [b",".join(r.split(b",")[first:last]) for r in (SEVERAL, *rows)])
    log = wd.logs.read_log(path, columns={"entity": "sku"})
    single, size = expected(40 if chained else 39), 40 if chained else 39
    assert columns(log)[:2] == (
        [s for s in single[0] for _ in "abc"],
        [a for a in single[1] for _ in "abc"],
    )
    assert log.rewards == pytest.approx([r + k for r in single[2] for k in range(3)])
    assert [log.state_labels[s] for s in log.nexts] == [s for s in single[3] for _ in "abc"]
    assert log.entities.tolist() == [0, 1, 2] * size
    assert [log.when(k) for k in (1, 3, 4, 3 * size)] == ["1", "1", "2", str(size)]
    assert (log.gaps(), log.breaks(), log.unusable_count) == ([], 0, 0)
    assert "3 entities" in log.notes[-1]


def test_lines_of_an_entity_are_in_the_order_of_its_own_time(tmp_path):
    rows = [row for of in of_entities(lines(30)) for row in of]
    rows[30], rows[31] = rows[30].replace(b"11,", b"10,", 1), rows[31].replace(b"sku 1", b"")
    path = written(tmp_path, [SEVERAL, *rows])
    log = wd.logs.read_log(path, columns={"entity": "sku"})
    assert [tuple(one) for one in log.unusable] == [
        (32, "t", "'10' does not come after the lines before of its entity"),
        (33, "sku", "it is empty"),
    ]
    assert (log.steps, log.breaks()) == (88, 2)
    with pytest.raises(
        wd.InputError, match="60 of 90 lines .*: 60 like line 3, t: '1' does .*entity="
    ):
        wd.logs.read_log(path)


@pytest.mark.parametrize(
    ("cells", "decimal", "numbers", "note"),
    [
        (["1,5", "-0,25", "1.234,5", "7"], None, [1.5, -0.25, 1234.5, 7], "comma."),
        (["€ 1,50", "-€ 2,00", "3,00 €", "\u22124"], None, [1.5, -2, 3, -4], "comma, in €."),
        (["$1,234.50", "$-3", "$ 12", "1,000"], None, [1234.5, -3, 12, 1000], "point, in $."),
        (["1\u00a0234,5 EUR", "EUR 2", "3", "4"], None, [1234.5, 2, 3, 4], "comma, in EUR."),
        (["1,234", "2", "3", "4"], ",", [1.234, 2, 3, 4], "comma."),
        (["1,234", "2", "3", "4"], ".", [1234, 2, 3, 4], "point."),
        (["1.234", "2", "3", "4"], ",", [1234, 2, 3, 4], "comma."),
        (["1.234", "2e1", "3", "4"], None, [1.234, 20, 3, 4], None),
        (["1,234,567", "2", "3", "4"], None, [1234567, 2, 3, 4], "point."),
        (["1.5", "2,345", "3", "4"], None, [1.5, 2345, 3, 4], "point."),
    ],
)  # fmt: skip
def test_rewards_may_have_a_decimal_comma_and_a_currency(tmp_path, cells, decimal, numbers, note):
    rows = ["state;action;reward;next_state", *(f"0;0;{cell};0" for cell in cells)]
    path = written(tmp_path, [row.encode() for row in rows])
    log = wd.logs.read_log(path, decimal=decimal)
    assert log.rewards.tolist() == numbers
    assert log.notes[:-1] == ([f"Rewards are read with a decimal {note}"] if note else [])


def test_amounts_of_another_form_are_named(tmp_path):
    cells = ["1,5 €", "2 $", "1.5", "--3", "1.23,4", "€3€", "4,5", "5,5", "1,5e3", "6", "7,1", "8"]
    rows = ["state;action;reward;next_state", *(f"0;0;{cell};0" for cell in cells)]
    log = wd.logs.read_log(written(tmp_path, [row.encode() for row in rows]))
    assert [one.line for one in log.unusable] == [3, 4, 5, 6, 7, 10]
    rows = ["state;action;reward", *["0;0;1,234", "0;0;2"] * 4]
    with pytest.raises(wd.InputError, match="without `decimal`: its mark may stand between thou"):
        wd.logs.read_log(written(tmp_path, [row.encode() for row in [*rows, "0;0;3,456"]]))
    with pytest.raises(wd.InputError, match="decimal: no such choice: ';'"):
        wd.logs.read_log(tmp_path / "log.csv", decimal=";")


@given(st.lists(st.decimals(-(10**7), 10**7, places=2), min_size=1), st.booleans())
def test_amounts_are_those_that_were_formatted(amounts, is_comma):
    """Against Python's own formatting."""
    texts = [f"{amount:,.2f}" for amount in amounts]
    if is_comma:
        texts = [text.translate(str.maketrans(",.", ".,")) for text in texts]
    found = Amounts().parse(pl.Series([f"{text} CHF" for text in texts]))
    assert found.to_list() == [float(amount) for amount in amounts]


def test_words_are_states_and_dates_are_times(tmp_path):
    rows = [HEADER]
    weather = ["sun", "rain", "rain", "sun", "fog", "sun"]
    for day, (now, after) in enumerate(zip(weather, weather[1:], strict=False), 1):
        rows.append(f"2012-02-{25 + day if day < 5 else 30},{now},go,1,{after}".encode())
    rows[5] = b"2012-03-02,fog,stay,0,sun"
    log = wd.logs.read_log(written(tmp_path, rows))
    assert log.state_labels == ["fog", "rain", "sun"]
    assert log.space.state_names == ("fog", "rain", "sun")
    assert (log.when(1), log.when(4)) == ("2012-02-26", "2012-02-29")
    assert [(g.after, g.before, g.missing) for g in log.gaps()] == [
        ("2012-02-29", "2012-03-02", 1.0)
    ]


def test_times_may_be_fractions_of_seconds(tmp_path):
    rows = [
        HEADER,
        *(b"%.1f,%s" % (t / 2 + 0.5, row.split(b",", 1)[1]) for t, row in enumerate(lines())),
    ]
    log = wd.logs.read_log(written(tmp_path, rows))
    assert (log.when(1), log.when(2), log.unusable_count, log.gaps()) == ("0.5", "1", 0, [])


def test_without_t_and_next_state_the_order_of_lines_is_taken(tmp_path):
    rows = [b"state,action,reward", *(b",".join(row.split(b",")[1:4]) for row in lines())]
    log = wd.logs.read_log(written(tmp_path, rows))
    data = expected(39)
    assert columns(log) == data
    assert len(log.notes) == 2


def test_steps_to_states_without_an_action_are_left_out(tmp_path):
    rows = [HEADER, *lines(39), b"40,1,0,0.4,99"]
    log = wd.logs.read_log(written(tmp_path, rows))
    assert (log.steps, log.left_out, log.state_labels) == (39, 1, [0, 1, 2])


def test_pairs_that_were_never_played_are_listed():
    log = wd.logs.Log.from_arrays([0, 1, 0, 1], ["a", "b", "c", "b"], [0, 1, 0, 1], [1, 0, 1, 0])
    assert log.unseen() == [(0, "b"), (1, "a"), (1, "c")]
    assert log.space.counts.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("rows", "options", "said"),
    [
        ([b""], {}, "is empty"),
        ([b"\xff\xfet\x00,\x00"], {}, "at line 1: is UTF-16"),
        ([HEADER, b"1,0,0,1\x00,1"], {}, "at line 2: holds a NUL byte"),
        (
            [b"t,stat,action,reward"],
            {},
            "no column 'state' among 't', 'stat', .*--column state=stat",
        ),
        (
            [HEADER + b",reward", b"1,0,0,1,1,1"],
            {},
            "line 1: the column 'reward' .* columns 4 and 6",
        ),
        ([b"t,st\xffate"], {}, "the header is not UTF-8"),
        ([HEADER, b'1,0,0,"1,1', b"2,0,0,1,1"], {}, "at line 2: a quote is opened and never"),
        ([HEADER, b"1,0,0,a,1", b"2,0,0,b,1"], {}, "line 2, column 'reward': 2 of 2 lines cannot"),
        ([HEADER, b"3,0,0,1,0", b"2,0,0,1,0", b"1,0,0,1,0"], {}, "sort the lines by t"),
        ([HEADER, *lines()], {"columns": {"gain": "x"}}, "no such choice: 'gain'"),
        ([HEADER, *lines()], {"columns": {"t": "when"}}, "no column 'when'"),
        ([HEADER, *lines()], {"columns": {"t": "state"}}, "names one column twice"),
        ([HEADER, *lines()], {"separator": "--"}, "separates nothing"),
        ([HEADER, *lines()], {"reward_range": (0, 0.1)}, "reward_range: 0.4 is not"),
        ([b"state,action,reward", b"1,1,1"], {}, "single step"),
        ([HEADER, b"1,0,0,1,5"], {}, "no step leads to a state with an action in the log"),
        ([HEADER], {}, "holds no lines, only the names of columns"),
        (
            [HEADER, b"1,0,0,1e308,0", b"2,0,0,-1e308,0"],
            {},
            "line 2, column 'reward': 2 of 2 .* '1e308' is beyond 1e\\+100",
        ),
        ([HEADER, *(b"%d,0,0,5,0" % t for t in range(1, 9))], {}, "all 8 rewards are 5, .*--range"),
    ],
)
def test_files_that_are_no_logs_are_refused(tmp_path, rows, options, said):
    path = written(tmp_path, rows, last=bool(rows[0]))
    with pytest.raises(wd.InputError, match=said):
        wd.logs.read_log(path, **options)


def test_no_file_a_folder_and_another_kind_of_file_are_refused(tmp_path):
    for path, said in (
        (tmp_path / "none.csv", "no such file"),
        (tmp_path, "it is a folder"),
        (written(tmp_path, [b"PAR1 no"], name="x.parquet"), "cannot be read"),
        (written(tmp_path, [b"a\rb\rc"], name="mac.csv"), "its lines end in CR alone"),
    ):
        with pytest.raises(wd.InputError, match=said):
            wd.logs.read_log(path)


def test_a_parquet_column_of_lists_is_refused(tmp_path):
    pl.DataFrame({"state": [[1]], "action": [1], "reward": [1.0]}).write_parquet(tmp_path / "x.pq")
    with pytest.raises(wd.InputError, match="column 'state': holds List"):
        wd.logs.read_log(tmp_path / "x.pq")


def test_an_enormous_cell_is_named_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(scanning, "_LONGEST", 1 << 12)
    monkeypatch.setattr(scanning, "_PIECE", 1 << 10)
    rows = [HEADER, *lines(600), b"601,1," + b"9" * 9000 + b",1,2", *lines(600, 602)]
    with pytest.raises(wd.InputError, match=r"at line 602, column 3 \('action'\): a cell"):
        wd.logs.read_log(written(tmp_path, rows))
    rows[601] = b'601,1,"' + b"9\n" * 4500 + b'",1,2'
    with pytest.raises(wd.InputError, match=r"at line 602, column 3 \('action'\)"):
        wd.logs.read_log(written(tmp_path, rows))


def test_a_cell_of_two_megabytes_is_refused_as_it_comes(tmp_path):
    rows = [HEADER, *lines(10), b"11,1,0," + b"9" * 2_000_000 + b",2"]
    with pytest.raises(wd.InputError, match=r"at line 12, column 4 \('reward'\)"):
        wd.logs.read_log(written(tmp_path, rows))


def test_too_many_states_say_to_bin(tmp_path):
    rows = [HEADER, *(b"%d,%d,0,1,%d" % (t, t, t + 1) for t in range(1, 10_100))]
    with pytest.raises(wd.InputError, match="more than 10,000 of them. Fix: put measurements"):
        wd.logs.read_log(written(tmp_path, rows))


CELLS = st.text(st.sampled_from('ab1,"\n;'), max_size=5)


@given(
    st.lists(st.lists(CELLS, min_size=2, max_size=4), min_size=1, max_size=12), st.integers(1, 9)
)
def test_records_and_their_lines_are_those_of_the_csv_module(tmp_path_factory, table, piece):
    """A second reader, Python's own, on files with quotes and line ends inside of cells."""
    text = io.StringIO()
    csv.writer(text, quoting=csv.QUOTE_ALL, lineterminator="\n").writerows(table)
    path = tmp_path_factory.mktemp("scan") / "x.csv"
    path.write_text(text.getvalue())
    reader = csv.reader(io.StringIO(text.getvalue()))
    starts, before = [], 0
    for _ in reader:
        starts.append(before + 1)
        before = reader.line_num
    old, scanning._PIECE = scanning._PIECE, piece
    try:
        found = scan(path, ",", 3)
        places = lines_of(path, np.arange(len(table)), quoted=True)
    finally:
        scanning._PIECE = old
    assert found.records == len(table)
    assert found.beyond.tolist() == [k for k, row in enumerate(table) if len(row) > 3]
    assert places.tolist() == starts
