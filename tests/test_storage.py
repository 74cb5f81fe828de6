"""Laws of memory: a process may have what the tightest of its control groups leaves it."""

from __future__ import annotations

from pathlib import Path

import pytest

from causal_arrow import storage


@pytest.fixture
def cgroups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty tree of control groups, on a machine with 9,000 bytes."""
    monkeypatch.setattr(storage, "CGROUP", tmp_path)
    monkeypatch.setattr(storage, "OWN_CGROUP", tmp_path / "own")
    monkeypatch.setattr(storage, "_available", lambda: 9000)
    return tmp_path


def limited(group: Path, limit: str, use: int, stat: str = "") -> None:
    """A control group of version 1 below `memory`, else of version 2."""
    first = "memory" in group.parts
    group.mkdir(parents=True, exist_ok=True)
    (group / ("memory.limit_in_bytes" if first else "memory.max")).write_text(f"{limit}\n")
    (group / ("memory.usage_in_bytes" if first else "memory.current")).write_text(f"{use}\n")
    (group / "memory.stat").write_text(stat)


def test_without_control_groups_the_machine_decides(cgroups: Path) -> None:
    assert storage.free_memory() == 9000
    (cgroups / "own").write_text("0::/nowhere\n")
    assert storage.free_memory() == 9000


def test_the_tightest_control_group_decides_however_far_up_it_is(cgroups: Path) -> None:
    (cgroups / "own").write_text("0::/service/worker/one\n")
    limited(cgroups / "service" / "worker" / "one", "8000", 1000)
    assert storage.free_memory() == 7000
    limited(cgroups / "service" / "worker", "max", 2000)
    limited(cgroups / "service", "5000", 2000)
    assert storage.free_memory() == 3000
    limited(cgroups, "2000", 500)
    assert storage.free_memory() == 1500
    limited(cgroups / "service" / "other", "10", 5)
    assert storage.free_memory() == 1500


def test_control_groups_of_the_first_version_count_too(cgroups: Path) -> None:
    (cgroups / "own").write_text("5:devices:/\n4:cpu,memory:/docker/one\n0::/\n")
    limited(cgroups / "memory" / "docker" / "one", "9223372036854771712", 500)
    assert storage.free_memory() == 9000
    limited(cgroups / "memory", "6000", 2000)  # as in a container, which sees its own group as the root
    assert storage.free_memory() == 4000


def test_pages_of_files_that_can_be_given_back_count_as_free(cgroups: Path) -> None:
    (cgroups / "own").write_text("0::/\n")
    limited(cgroups, "5000", 4800, "anon 800\ninactive_file 3000\n")
    assert storage.free_memory() == 3200
    limited(cgroups, "5000", 6000)
    assert storage.free_memory() == 0
