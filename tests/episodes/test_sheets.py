"""No sheet is read the wrong way round: all are read as a person would, or refused with the remedy."""

from __future__ import annotations

import pytest

from boundwatch.episodes import read_costs
from boundwatch.episodes.lines import LineReader
from boundwatch.episodes.table import Wanted
from boundwatch.errors import BoundwatchError
from sheets import SHEETS, Sheet


def test_there_are_many():
    assert len({sheet.name for sheet in SHEETS}) == len(SHEETS) >= 70
    assert sum(sheet.costs is not None for sheet in SHEETS) >= 40


@pytest.mark.parametrize("sheet", SHEETS, ids=[sheet.name for sheet in SHEETS])
def test_sheets_are_read_as_people_read_them(tmp_path, sheet: Sheet):
    path = tmp_path / sheet.name
    path.write_bytes(sheet.data)
    if sheet.costs is not None:
        episodes = read_costs(path, **sheet.flags)
        assert episodes.costs.tolist() == sheet.costs
        assert sheet.noted in " ".join(episodes.notes)
        return
    with pytest.raises(BoundwatchError) as refused:
        read_costs(path, **sheet.flags)
    message = str(refused.value)
    assert sheet.refused is not None
    assert sheet.refused in message
    assert "\n" not in message
    assert message.startswith(str(path))


TABLES = [sheet for sheet in SHEETS if sheet.name.endswith((".csv", ".tsv", ".jsonl")) and sheet.costs]


@pytest.mark.parametrize("sheet", TABLES, ids=[sheet.name for sheet in TABLES])
def test_a_table_that_grows_is_read_alike_or_not_at_all(sheet: Sheet):
    """Line by line, some of what is clear in a whole file is not; but nothing is turned round."""
    flags = dict(sheet.flags)
    lines = LineReader(
        Wanted.of(**{name: flags.pop(name, None) for name in ("success", "cost", "reward")}),
        flags.get("cost_range"),
        success_values=[flags["success_values"]] if "success_values" in flags else (),
    )
    costs = []
    try:
        for line in sheet.data.decode("utf-8", "replace").splitlines():
            if (found := lines.read(line)) is not None:
                costs.append(found.cost)
    except BoundwatchError:
        assert costs == sheet.costs[: len(costs)]
    else:
        assert costs in (sheet.costs, [])
