"""Does my MERGE survive the other jobs that write to the orders table?"""

from pathlib import Path

from lakerace.assertions import assert_aborts, assert_commits, assert_history, assert_rows

ORDERS = Path(__file__).with_name("orders.sql")
SHIPPED = "(SELECT 1L AS order_id, DATE'2026-03-01' AS order_date, 'shipped' AS status)"
CHANGES = "WHEN MATCHED THEN UPDATE SET status = s.status WHEN NOT MATCHED THEN INSERT *"
UPSERT = f"MERGE INTO {{t}} t USING {SHIPPED} s ON t.order_id = s.order_id {CHANGES}"
UPSERT_OF_ONE_DAY = (
    f"MERGE INTO {{t}} t USING {SHIPPED} s ON t.order_id = s.order_id AND t.order_date = DATE'2026-03-01' {CHANGES}"
)
CLEAN_UP = "DELETE FROM {t} WHERE order_date = DATE'2026-03-02' AND order_id = 4"


def test_my_merge_loses_to_a_clean_up_of_another_day(race):
    seen = race(held=UPSERT, winners=[CLEAN_UP], layout=ORDERS)
    assert_aborts(seen, "A", "append", condition="DELTA_CONCURRENT_APPEND")
    assert_commits(seen, "B")
    assert_rows(seen, removed=[{"order_id": 4}])


def test_with_the_day_in_its_condition_it_survives(race):
    seen = race(held=UPSERT_OF_ONE_DAY, winners=[CLEAN_UP], layout=ORDERS)
    assert_commits(seen, "A", "B")
    assert_rows(seen, added=[{"order_id": 1, "status": "shipped"}], removed=[{"order_id": 1}, {"order_id": 4}])
    assert_history(seen, "A", operation="MERGE", metrics={"numTargetRowsUpdated": 1})


def test_the_clean_up_loses_to_my_merge_of_the_same_day_only(race):
    seen = race(held=CLEAN_UP, winners=[UPSERT, UPSERT_OF_ONE_DAY], layout=ORDERS)
    assert_commits(seen, "A", "B", "C")


def test_my_merge_updates_one_order(delta, table_factory):
    table = table_factory(ORDERS)
    delta.sql(UPSERT.replace("{t}", f"delta.`{table.path}`"))
    rows = delta.read.format("delta").load(str(table.path)).where("status = 'shipped'").collect()
    assert [row.order_id for row in rows] == [1]
