"""Lines to episodes: numbers, objects, tables; and lines that poison."""

import json
from functools import partial

import pytest

from boundwatch.episodes import read_costs
from boundwatch.episodes.opening import holds_lines, refuse_document
from boundwatch.episodes.table import Wanted
from boundwatch.errors import InvalidCost, InvalidSetting
from boundwatch.watching.ids import Ids
from boundwatch.watching.rows import Row, Rows, Rule


@pytest.mark.parametrize(
    ("text", "options", "cost"),
    [
        ("0.25\n", {}, 0.25),
        ("  1e-3 ", {}, 0.001),
        ('{"cost": 0.5, "id": "a"}', {}, 0.5),
        ('{"success": false}', {}, 1.0),
        ('{"success": 1}', {}, 0.0),
        ('{"reward": 3}', {"cost_range": (0, 4)}, 0.25),
    ],
)
def test_lines_that_hold_a_cost(text, options, cost):
    for line in (text, f"\ufeff{text}"):
        assert Rows(Rule(**options)).read(line) == [Row(cost)]


POISON = [
    "[" * 2000 + "]" * 2000,
    '{"cost":' + "[" * 100000 + "]" * 100000 + "}",
    '{"cost": ' + "9" * 5000 + "}",
    '{"cost": 0.1, "cost": 0.9}',
    '{"cost": NaN}',
    "0_1",
    "1e999",
]


@pytest.mark.parametrize(
    "text",
    ["0.1,0.2", "1.5", "nan", "true", "[0.1]", '{"a": 1}', "{", '{"cost": null}', "0x1", *POISON],
)
def test_lines_that_do_not(text):
    rows = Rows(Rule())
    rows.read("0.5")
    with pytest.raises(InvalidCost) as error:
        rows.read(text)
    assert len(str(error.value)) < 400
    assert rows.read("0.25") == [Row(0.25)]


def test_a_table_is_read_under_its_header():
    rows = Rows(Rule(id="trial", by="robot"))
    assert rows.read("trial;robot;success;note") == []
    assert rows.read('7;"arm;1";0;') == [Row(1.0, 7, "arm;1")]
    again = Rows(rows.rule)
    again.restore(rows.to_dict())
    again.begin_file()
    assert again.read("trial;robot;success;note") == []
    assert again.read("8;arm-1;1;ok") == [Row(0.0, 8, "arm-1")]
    for bad in ("8;arm-1;1", "8;arm-1;2;x", ";arm-1;1;x", "8;;1;x", '8;"arm;1;1'):
        with pytest.raises(InvalidCost):
            again.read(bad)
    assert (again.read("Trial;robot;success;note"), again.noticed) == (
        [],
        "repeats the header and was skipped",
    )
    assert (again.read("9;arm-1;0;x"), again.noticed) == ([Row(1.0, 9, "arm-1")], "")


@pytest.mark.parametrize(
    ("lines", "options"),
    [
        (["success", "failure", "success"], {}),
        (["ok", "fail", "OK"], {"success": "ok"}),
        (["success;", "1;", "success;"], {}),
        (["success,pass", "failure,fail", "success,pass"], {}),
        (["grasped", "placed", "grasped"], {"success": "grasped", "success_values": ("grasped", "placed")}),
    ],
)
def test_a_trial_that_reads_like_the_header_is_not_skipped(lines, options):
    """A header of words for outcomes may be a trial when it comes again; left out, failures remain."""
    rows = Rows(Rule(**options))
    assert (rows.read(lines[0]), len(rows.read(lines[1]))) == ([], 1)
    again = Rows(rows.rule)
    again.restore(rows.to_dict())
    for each in (rows, again):
        with pytest.raises(InvalidSetting, match="could be the column's name or a trial"):
            each.read(lines[2])
    again.begin_file()
    assert (again.read(lines[0]), again.noticed) == ([], "")  # as at the top of the first file


@pytest.mark.parametrize("header", ["abc", "trial,score", "cost,success", "success,success"])
def test_a_header_that_does_not_say_what_is_a_cost(header):
    rows = Rows(Rule())
    with pytest.raises(InvalidSetting):  # at the header, or at the first number under it
        list(map(rows.read, [header, "1"]))


DAMAGE, SUCCESS = '{"damage": 0.2, "success": true}', '{"success": false}'


@pytest.mark.parametrize(
    ("first", "cost", "other", "said"),
    [
        (DAMAGE, 0.2, SUCCESS, "has no 'damage', which was certified"),
        (SUCCESS, 1.0, DAMAGE, "has 'damage', which was certified, but the first object did not"),
    ],
)
def test_objects_are_all_read_by_the_certified_column_or_none(first, cost, other, said):
    rows = Rows(Rule(), Wanted("damage", "cost"))
    assert rows.read(first) == [Row(cost)]
    assert ("column 'damage' is read as a cost, as certified" in rows.noticed) == (first == DAMAGE)
    again = Rows(rows.rule, rows.certified)
    again.restore(rows.to_dict())
    for each in (rows, again):
        with pytest.raises(InvalidCost, match=said):
            each.read(other)
        assert (each.read(first), each.noticed) == ([Row(cost)], "")
    named = Rows(Rule(success="success"), rows.certified)
    assert [named.read(DAMAGE), named.read(SUCCESS)] == [[Row(0.0)], [Row(1.0)]]


@pytest.mark.parametrize("header", ["robot,ok,force_n", "robot,okay,force"])
def test_a_header_without_the_column_of_a_metric_is_refused(header):
    with pytest.raises(InvalidSetting, match=r"^has no column '(ok|force)'; choose one with"):
        Rows(Rule(success="ok", cost="force")).read(header)


@pytest.mark.parametrize("words", [(), ("held",)])
def test_a_word_that_may_be_a_trial_is_not_passed_over_as_a_title(words):
    rows = Rows(Rule(success="1", success_values=words))
    assert rows.read("# arm-1") == []
    with pytest.raises(InvalidSetting, match="'dropped' may be a trial or a title"):
        rows.read("dropped")
    assert rows.read("no") == [Row(1.0)]


def test_a_header_in_mid_stream_would_turn_costs_round():
    rows = Rows(Rule())
    rows.read("0.5")
    with pytest.raises(InvalidSetting, match="header of a table"):
        rows.read("success")
    with pytest.raises(InvalidCost):
        rows.read("error: no camera")


@pytest.mark.parametrize(
    ("meaning", "text", "cost"),
    [
        ("reward", '{"reward": 45}', 0.1),
        ("reward", '{"cost": 0.9}', 0.9),
        ("reward", '{"success": true}', 0.0),
        ("cost", '{"cost": 45}', 0.9),
        ("cost", "45", 0.9),
    ],
)
def test_a_certified_range_is_for_what_was_certified(meaning, text, cost):
    assert Rows(Rule(), ranges={meaning: (0.0, 50.0)}).read(text) == [Row(cost)]


def test_rewards_do_not_take_the_range_of_costs():
    with pytest.raises(InvalidSetting, match=r"^column 'reward' holds rewards; pass their least"):
        Rows(Rule(), ranges={"cost": (0.0, 50.0)}).read('{"reward": 12}')


def test_a_restart_remembers_that_something_stands_above_the_numbers():
    rows = Rows(Rule())
    assert rows.read("score") == []
    kept = rows.to_dict()
    earlier = {name: value for name, value in kept.items() if name != "above"}  # there may be something
    restored = [Rows(rows.rule), Rows(rows.rule)]
    for again, state in zip(restored, (kept, earlier), strict=True):
        again.restore(state)
    for each in (rows, *restored):
        with pytest.raises(InvalidSetting, match="what is above the numbers may be their header"):
            each.read("0.95")
    restored[0].restore(earlier | {"started": True})  # numbers had come
    assert restored[0].read("0.95") == [Row(0.95)]


def test_words_of_ones_own_line_by_line():
    """Each is a word of its own, and each other one is said to be a failure, once."""
    rows = Rows(Rule(success="end", success_values=("in bin,on table", "held")))
    rows.read("trial,end")
    found = []
    for word in ("floor", "on table", "floor", "held", "In Bin", "no", "lost"):
        ((cost, *_),) = rows.read(f"1,{word}")
        found.append((word, cost, rows.noticed))
    said = "holds {!r}, counted as a failure because it is not among --success-values"
    assert found == [
        ("floor", 1, said.format("floor")),
        ("on table", 0, ""),
        ("floor", 1, ""),
        ("held", 0, ""),
        ("In Bin", 0, ""),
        ("no", 1, ""),
        ("lost", 1, said.format("lost")),
    ]
    with pytest.raises(InvalidCost, match="looks like 'in bin'"):
        rows.read("8,in bni")


@pytest.mark.parametrize(
    ("header", "trials", "remarks"),
    [
        ("n,object,success,note,by", ["#7,mug,no,,", "#7,mug,no,hot", "#7,,,,"], ["# hot, dry", "# hot,,,,"]),
        ("success", ["#no", "# 0"], ["# lunch", "# robot: arm-1"]),
        ("success,,", ["#no,,"], ["# lunch,,"]),
        ("success,note", ["#no,", "#no,slow"], ["# lunch", "# lunch,"]),
    ],
)
def test_a_trial_that_was_commented_out_is_neither_counted_nor_skipped(tmp_path, header, trials, remarks):
    rows = Rows(Rule())
    rows.read(header)
    trial = ",".join("yes" if name == "success" else "" for name in header.split(","))
    for line in trials:
        (tmp_path / "log.csv").write_text(f"{header}\n{trial}\n{line}\n")
        for read in (partial(rows.read, line), partial(read_costs, tmp_path / "log.csv")):
            with pytest.raises(InvalidCost, match="looks like a trial that was commented out"):
                read()
    for line in remarks:
        (tmp_path / "log.csv").write_text(f"{header}\n{trial}\n{line}\n")
        assert rows.read(line) == []
        assert read_costs(tmp_path / "log.csv").costs.tolist() == [0]


@pytest.mark.parametrize("name", ["failure_pct", "failures %", "Prozent", "percent_failed"])
def test_percentages_need_their_range_line_by_line_too(name):
    line = f'{{"{name}": 0.5}}'
    with pytest.raises(InvalidSetting, match=f"^column '{name}' is in percent by its name; pass cost_range"):
        Rows(Rule(cost=name)).read(line)
    assert Rows(Rule(cost=name, cost_range=(0, 100))).read(line) == [Row(0.005)]


DOCUMENTS = ["{", '{"episodes": [', '{"policy": "v7",', '{"episodes":', "[", "[0.1, 0.2]", '[{"cost": 0}]']
DOCUMENTS += ['{"policy": "v7", "episodes": [{"cost": 0}, {"cost": 1}]}', '{"cost": [0.1, 0.2]}']


@pytest.mark.parametrize("first", DOCUMENTS)
def test_a_document_is_not_read_line_by_line(first):
    """Nor can it be passed over as malformed: only its last element would then be counted."""
    with pytest.raises(InvalidSetting, match=r"begins a JSON (document|array), which is read as a whole"):
        Rows(Rule()).read(first)
    with pytest.raises(InvalidCost, match="is not JSON"):  # cut off
        Rows(Rule()).read('{"cost": 0.')


def test_an_episode_may_hold_lists():
    steps = '"steps": [{"t": 1}, {"t": 2}]'
    assert Rows(Rule()).read(f'{{"cost": 0.5, {steps}}}') == [Row(0.5)]
    assert Rows(Rule(cost="mine")).read(f'{{"mine": 0.5, {steps}}}') == [Row(0.5)]
    assert Rows(Rule(), Wanted("mine", "cost")).read(f'{{"mine": 0.5, {steps}}}') == [Row(0.5)]
    nested = f'{{"trial": 3, "result": {{"success": true}}, {steps}}}'
    assert Rows(Rule(success="result.success")).read(nested) == [Row(0.0)]
    rewards = '{"success": true, "total": 0.5, "cost": 0.5, "steps": [{"cost": 0.5, "reward": 1}]}'
    assert Rows(Rule(success="success")).read(rewards) == [Row(0.0)]
    assert Rows(Rule(cost="total")).read(rewards) == [Row(0.5)]


def test_an_object_with_a_value_of_its_own_may_be_a_document():
    with pytest.raises(InvalidSetting, match="could be one episode or a document, as both it and its list"):
        Rows(Rule()).read('{"cost": 0.15, "episodes": [{"cost": 0.1}, {"cost": 0.2}]}')


def test_an_object_that_is_read_by_a_name_in_its_list_says_so_once(tmp_path):
    both = '{"cost": 0.25, "force": 9, "episodes": [{"cost": 0.5}, {"cost": 1}]}'
    rows = Rows(Rule(cost="cost"))
    assert rows.read(both) == [Row(0.25)]
    assert rows.noticed.startswith(
        "has 'cost', and so have the objects in its list 'episodes': it is counted as one episode; if it is "
        "a document of several, give it as a file"
    )
    (tmp_path / "log.json").write_text(both)
    assert read_costs(tmp_path / "log.json", cost="cost").costs.tolist() == [0.5, 1]
    assert (rows.read(both), rows.noticed) == ([Row(0.25)], "")
    others = Rows(Rule(cost="force", cost_range=(0, 10)))  # the list has none
    assert (others.read(both), others.noticed) == ([Row(0.9)], "")


def test_a_document_is_known_by_its_whole_first_line(tmp_path):
    """Also if it is longer than what is looked at to tell formats apart, or than any episode."""
    path = tmp_path / "log"
    for episodes in (25_000, 100_000):
        path.write_text('{"episodes": [' + ", ".join(['{"cost": 0.5}'] * episodes) + "]}")
        assert path.stat().st_size > (1 << 18 if episodes == 25_000 else 1 << 20)
        with pytest.raises(InvalidSetting, match=r"log: line 1: .* begins a JSON document"):
            refuse_document(str(path))
        assert not holds_lines(str(path))
    episode = '{"cost": 0.5, "steps": [' + ", ".join(['{"t": 1}'] * 50_000) + "]}\n"
    path.write_text(episode * 3)
    refuse_document(str(path))


def test_a_decimal_comma_without_a_name_is_not_passed_over_as_a_title():
    for rule in (Rule(), Rule(cost="1")):
        with pytest.raises(InvalidSetting, match=r"^0,5 could be one number with a decimal comma or two col"):
            Rows(rule).read("0,5")
        rows = Rows(rule)  # which has one column, as its first line shows
        assert [rows.read(line) for line in ("0", "0,75", '"0,5"')] == [[Row(0.0)], [Row(0.75)], [Row(0.5)]]
        assert Rows(rule).read('"0,5"') == [Row(0.5)]


@pytest.mark.parametrize("first", ["812,5", "812.5"])
def test_decimals_are_written_alike(first):
    other = first.translate({ord(","): ".", ord("."): ","})
    rows = Rows(Rule(cost="force", cost_range=(0, 5000)))
    assert (rows.read("trial;force"), rows.read(f"1;{first}")) == ([], [Row(0.1625)])
    again = Rows(rows.rule)
    again.restore(rows.to_dict())
    for each in (rows, again):
        with pytest.raises(InvalidCost, match=f"^column 'force' = '{other}' has a decimal "):
            each.read(f"2;{other}")
        assert each.read("3;50") == [Row(0.01)]


def test_a_summary_is_no_trial_wherever_it_comes():
    rows = Rows(Rule())
    assert (rows.read("trial,mode,cost"), rows.read("1,max,0.1")) == ([], [Row(0.1)])
    again = Rows(rows.rule)
    again.restore(rows.to_dict())
    for each in (rows, again):
        for mode in ("max", "mean", "mid"):  # a condition is no summary
            assert each.read(f"2,{mode},0.2") == [Row(0.2)]
        for line in ("Mean,,0.15", ",Total:,0.3", "Mean,mid,0.15"):
            with pytest.raises(InvalidCost, match=r"^looks like a summary \('(Mean|Total:)'\), not a trial"):
                each.read(line)


@pytest.mark.parametrize(
    ("header", "trials", "last", "word"),
    [
        ("task,cost", ["mug,0.1", "bowl,0.16"], "Mean,0.13", "Mean"),
        ("robot,task,cost", ["r1,mug,0.1", "r1,bowl,0.16"], "r1,Total,0.26", "Total"),
        ("trial,mode,cost,notes", ["1,mid,0.1,", "2,mid,0.2,"], "3,max,0.3,", None),
        (",mode,cost", ["0,mid,0.1", "1,mid,0.2"], "2,max,0.3", None),  # by pandas
        ("mode,cost,", ["mid,0.1,", "mid,0.2,slow"], "max,0.3,", "max"),
    ],
)
def test_a_summary_is_refused_in_a_stream_as_in_a_file(tmp_path, header, trials, last, word):
    rows, path = Rows(Rule()), tmp_path / "trials.csv"
    for line in (header, *trials):
        rows.read(line)
    path.write_text("\n".join((header, *trials, last)) + "\n")
    if word is None:
        assert (len(rows.read(last)), len(read_costs(path))) == (1, len(trials) + 1)
        return
    fault = rf"looks like a summary \('{word}'\), not a trial; take it out"
    with pytest.raises(InvalidCost, match=f"^{fault}"):
        rows.read(last)
    with pytest.raises(InvalidCost, match=f"line {len(trials) + 2} {fault}"):
        read_costs(path)


@pytest.mark.parametrize("word", ["max", "average", "overall"])
def test_a_condition_called_like_a_summary_is_counted(tmp_path, word):
    lines = ["time,speed,cost", *[f"9:{i},{word if i % 2 else 'slow'},0.{i}" for i in range(1, 9)]]
    rows, path = Rows(Rule()), tmp_path / "trials.csv"
    path.write_text("\n".join(lines) + "\n")
    assert sum(len(rows.read(line)) for line in lines) == len(read_costs(path)) == 8


def test_lines_above_the_header_are_said_to_be_skipped():
    for titles, said in {1: "the line above it was skipped", 3: "3 lines above it were skipped"}.items():
        rows = Rows(Rule())
        assert [rows.read("May, arm-1") for _ in range(titles)] == [[]] * titles
        assert (rows.read("trial,cost"), rows.noticed) == ([], f"is the header, and {said}")


@pytest.mark.parametrize(
    ("first", "other", "said"),
    [
        ('{"cost": 0.2}', '{"success": true}', "column 'success' is a success, but lines above it had col"),
        ('{"success": true}', '{"cost": 0.2}', "column 'cost' is a cost, but lines above it had column 's"),
        ("0.2", '{"success": true}', "column 'success' is a success, but lines above it had no name, a cost"),
        ('{"success": true}', "0.2", "'0.2' is a cost, but lines above it had column 'success', a success"),
    ],
)
def test_all_lines_are_of_one_measure(first, other, said):
    rows = Rows(Rule())
    assert len(rows.read(first)) == 1
    again = Rows(rows.rule)
    again.restore(rows.to_dict())
    for each in (rows, again):
        with pytest.raises(InvalidCost, match=f"^{said}"):
            each.read(other)
        assert len(each.read(first)) == 1
    alike = Rows(Rule())
    assert [alike.read(f'{{"{name}": true}}') for name in ("success", "is_success")] == [[Row(0.0)]] * 2


def objects(tasks, column="task"):
    return [json.dumps({column: task, "cost": 0.5}) for task in tasks]


@pytest.mark.parametrize("column", ["task", "Robot"])
def test_tasks_in_blocks_are_refused_once_that_is_sure(column):
    mug, bowl = (objects([task], column)[0] for task in ("mug", "bowl"))
    rows = Rows(Rule())
    assert [rows.read(mug) for _ in range(50)] == [[Row(0.5)]] * 50
    assert rows.read(bowl) == [Row(0.5)]
    assert f"is of {column} 'bowl', lines above it of 'mug': they are taken for one mixture" in rows.noticed
    again = Rows(rows.rule)
    again.restore(rows.to_dict())
    for each in (rows, again):
        assert (each.read(bowl), each.noticed) == ([Row(0.5)], "")
        with pytest.raises(InvalidSetting, match=f"^lists one {column} after the other, so a hard one"):
            each.read(bowl)
    apart = Rows(Rule(by=column))
    assert len([apart.read(line) for line in [mug] * 50 + [bowl] * 50]) == 100


def test_tasks_that_take_turns_are_a_mixture():
    rows = Rows(Rule())
    noticed = []
    for line in objects(["mug"] * 5 + ["bowl"] + ["mug"] * 40 + ["plate"] * 40):
        rows.read(line)
        noticed += [rows.noticed] if rows.noticed else []
    assert len(noticed) == 1


def test_lines_that_may_be_steps_are_said_once():
    def said(lines, **rule):
        rows = Rows(Rule(**rule))
        found = []
        for line in lines:
            rows.read(json.dumps({"cost": 0.5} | line))
            found += [rows.noticed] if rows.noticed else []
        return found

    steps = [{"episode_id": n // 3} for n in range(12)]
    (note,) = said(steps)
    assert note.startswith("has the same episode_id as the line above it; if lines are steps, no error rate")
    assert said(steps, id="episode_id") == []  # sent again, which is for the one who counts
    assert said([{"episode": n} for n in range(12)]) == []
    assert said([{"episode": n // 2, "arm": "ab"[n % 2]} for n in range(12)], by="arm") == []
    assert said([{"episode": n, "steps": 7} for n in range(12)]) == []


def test_a_numbered_episode_must_have_its_number():
    for line in ("0.5", '{"cost": 0.5}', '{"cost": 0.5, "n": null}'):
        with pytest.raises(InvalidCost, match="'n'"):
            Rows(Rule(id="n")).read(line)


def test_ids_are_remembered_in_ranges_or_by_hash():
    ids = Ids()
    for number in (5, 6, 8, 7, 2):
        assert number not in ids
        ids.add(number)
    assert ids.to_list() == [[2, 2], [5, 8]]
    for value in ("a", 1.5, True, ["x", 1], {"run": 3, "n": 4}, ""):
        assert value not in ids
        ids.add(value)
        assert value in ids
    assert {"n": 4, "run": 3} in ids
    again = Ids.from_list(ids.to_list())
    assert again.to_list() == ids.to_list()
    assert all(number in again for number in (2, 5, 6, 7, 8))
    assert not any(number in again for number in (1, 3, 4, 9, -1))


def test_steps_within_an_episode_may_repeat_its_column():
    line = '{"success": true, "steps": [{"success": false}, {"success": true}]}'
    with pytest.raises(InvalidSetting, match="for an episode name the column with --success"):
        Rows(Rule()).read(line)
    named = Rows(Rule(success="success"))
    assert named.read(line) == [Row(0.0)]
    begun = Rows(Rule())
    begun.restore(Rows(Rule()).to_dict())
    assert begun.read(line) == [Row(0.0)]  # nothing that goes on can begin a document


def test_a_robot_that_never_changes_does_not_hide_tasks_in_blocks():
    rows = Rows(Rule())
    rows.read("robot,task,success")
    for place in range(52):
        rows.read(f"r1,{'mug' if place < 50 else 'bowl'},1")
    with pytest.raises(InvalidSetting, match="lists one task after the other"):
        rows.read("r1,bowl,1")
