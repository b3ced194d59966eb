"""Small files that claim to be large: bounded, or refused before the memory is taken."""

import tracemalloc

import pytest
from benchmarks.small_files import FILES

from boundwatch.errors import InvalidCost, InvalidSetting
from boundwatch.readers import read_costs


@pytest.mark.parametrize(("make", "episodes"), FILES.values(), ids=FILES)
def test_bounded(tmp_path, make, episodes):
    path = tmp_path / "hostile"
    path.write_bytes(make())
    if episodes is not None:
        assert len(read_costs(path)) == episodes
        return
    tracemalloc.start()
    try:
        with pytest.raises(InvalidCost):
            read_costs(path)
        assert tracemalloc.get_traced_memory()[1] < 512 << 20
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("role", ["by", "strata", "policy"])
def test_a_column_of_numbers_is_none_of_tasks(tmp_path, role):
    path = tmp_path / "log.csv"
    path.write_text("cost,trial\n" + "".join(f"0,{n}\n" for n in range(20_001)))
    with pytest.raises(InvalidSetting, match="20,001 values") as refused:
        read_costs(path, cost="cost", **{role: "trial"})
    assert refused.value.where.column == "trial"
