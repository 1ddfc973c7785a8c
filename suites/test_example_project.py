"""Can a data engineer race her own MERGE? The example project, copied away and run as she would run it."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).with_name("example")
LIMIT_S = 600


@pytest.fixture
def project(tmp_path: Path, engine) -> Path:
    if engine.line.engine != "delta-spark":
        pytest.skip("the example is a Spark project")
    return Path(shutil.copytree(EXAMPLE, tmp_path / "orders-pipeline", ignore=shutil.ignore_patterns("__pycache__")))


def test_the_example_passes_with_two_workers(project, inner_pytest):
    run = inner_pytest(project, "-n", "2")
    output, _ = run.communicate(timeout=LIMIT_S)
    assert run.returncode == 0, output
    assert re.search(r"\b4 passed", output), output
    made = {path.name for path in project.iterdir()} - {".pytest_cache", "__pycache__"}
    assert made == {"pyproject.toml", "orders.sql", "test_my_merge.py", "results"}
    assert (project / "results" / "latest" / "index.html").is_file()


def test_a_wrong_belief_fails_with_the_race_and_what_was_seen(project, inner_pytest):
    (project / "test_my_merge.py").write_text('''
from pathlib import Path
from lakerace.assertions import assert_commits

def test_my_merge_always_wins(race):
    seen = race(held="UPDATE {t} SET status = 'shipped' WHERE order_id = 1",
                winners=["DELETE FROM {t} WHERE order_id = 2"], layout=Path("orders.sql"))
    assert_commits(seen, "A")

def test_a_layout_that_cannot_be_made(race):
    race(held="DELETE FROM {t}", winners=["DELETE FROM {t}"], layout=["CREATE TABLE {t} (id BIGINT) USING nothing"])
''')
    run = inner_pytest(project)
    output, _ = run.communicate(timeout=LIMIT_S)
    assert run.returncode == 1, output
    assert "A was to commit, but it aborted with append: ConcurrentAppendException" in output
    assert "(1, datetime.date(2026, 3, 1), 'open')" not in output, "an unchanged row is no news"
    assert "- (2, datetime.date(2026, 3, 1), 'open')" in output
    assert "layout inline: 'CREATE TABLE {t} (id BIGINT) USING nothing' failed" in output


def test_on_the_second_engine_it_runs_as_well(project, inner_pytest):
    (project / "test_my_merge.py").write_text('''
from pathlib import Path
from lakerace.assertions import assert_commits, assert_rows

def test_my_merge_survives_a_clean_up_of_another_day(race):
    seen = race(held="UPDATE {t} SET status = 'shipped' WHERE order_date = DATE'2026-03-01' AND order_id = 1",
                winners=["DELETE FROM {t} WHERE order_date = DATE'2026-03-02'"], layout=Path("orders.sql"))
    assert_commits(seen, "A", "B")
    assert seen.engine == "delta-rs"
    assert_rows(seen, added=[{"status": "shipped"}], removed=[{"order_id": 1}, {"order_id": 3}, {"order_id": 4}])

def test_of_spark_only(delta):
    raise AssertionError("there is no Spark session")
''')
    run = inner_pytest(project, "-rs", "--engine", "delta-rs")
    output, _ = run.communicate(timeout=LIMIT_S)
    assert run.returncode == 0, output
    assert "1 passed, 1 skipped" in output, output
    assert "delta-rs has no Spark session" in output, output
