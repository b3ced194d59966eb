"""Sheets as labs have them: read as declared or refused with a remedy, as a file and line by line."""

import json
from contextlib import nullcontext

import pytest

from boundwatch.episodes.declared import Declared
from boundwatch.errors import Argument, Refusal
from boundwatch.readers import Line, TextRows, read_costs
from sheets import SHEETS, Sheet

NOT_LINES = (b"PK", b"[", b"\xff\xfe", b"\xfe\xff", b"\xd0\xcf", b"<html")
# Rows that are put together, filled in or left out by whoever reads them, and totals, which need all of them.
STEPS = ("where", "episode", "strata", "cluster", "fill_down", "as_is")


@pytest.mark.parametrize("sheet", SHEETS, ids=lambda sheet: sheet.name)
def test_read_as_declared_or_refused_with_a_remedy(tmp_path, sheet: Sheet):
    path = tmp_path / sheet.name
    path.write_bytes(sheet.data)
    if sheet.refused is None:
        found = read_costs(path, **sheet.flags)
        assert found.costs.tolist() == sheet.costs
        assert any(sheet.noted in note for note in found.notes) or not sheet.noted
        return
    with pytest.raises(sheet.refused) as refused:
        read_costs(path, **sheet.flags)
    assert type(refused.value) is sheet.refused
    assert refused.value.where.source.startswith(str(path))
    assert any(refused.value.remedy)
    asked = {part.name for part in refused.value.remedy if isinstance(part, Argument)}
    assert asked == set(sheet.asks)


@pytest.mark.parametrize(
    "sheet",
    [s for s in SHEETS if not s.data.startswith(NOT_LINES) and not set(STEPS) & {*s.flags, *s.asks}],
    ids=lambda sheet: sheet.name,
)
@pytest.mark.parametrize("restart", [False, True], ids=["", "restarts"])
def test_line_by_line_as_a_whole(sheet: Sheet, restart):
    parts = sheet.data.removesuffix(b"\n").split(b"\n")
    with nullcontext() if sheet.refused is None else pytest.raises(Refusal):
        assert list(costs(parts, sheet.flags, restart)) == sheet.costs


def costs(parts, flags, restart):
    declared = Declared.of(**flags)
    text = TextRows(declared, "sheet")
    for number, raw in enumerate(parts, start=1):
        if (block := text.take_lines([Line(number, raw)])) is not None:
            yield from text.costs(block).costs
        if restart:
            text = TextRows(declared, "sheet", json.loads(json.dumps(text.state)))
    text.end()
