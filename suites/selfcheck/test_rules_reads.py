"""From SQL to read sets: which part of a condition narrows a read, and which statement reads nothing?"""

from __future__ import annotations

import datetime

import pytest

from lakerace.rules.statements import one_value
from lakerace.rules.values import UNKNOWN
from selfcheck.planning import BY_DATE, DAY, SPARK, only

SOURCE = f"(SELECT 1L AS id, {DAY} AS event_date, 'DE' AS country, 7 AS amount, 'm' AS note)"


@pytest.mark.parametrize(
    ("condition", "partition", "data"),
    [
        (f"event_date = {DAY}", f"event_date = {DAY}", ""),
        ("event_date = '2026-08-11'", "event_date = '2026-08-11'", ""),
        (f"event_date = {DAY} AND id = 1", f"event_date = {DAY}", "id = 1"),
        (f"(event_date = {DAY}) AND (id = 1 AND amount > 2)", f"event_date = {DAY}", "id = 1 AND amount > 2"),
        (f"event_date = {DAY} OR id = 1", "", f"event_date = {DAY} OR id = 1"),
        (f"event_date IN ({DAY})", f"event_date IN ({DAY})", ""),
        (f"event_date BETWEEN {DAY} AND {DAY}", f"event_date BETWEEN {DAY} AND {DAY}", ""),
        ("event_date IS NULL", "event_date IS NULL", ""),
        ("year(event_date) = 2026", "YEAR(event_date) = 2026", ""),
        ("event_date = date(note)", "", "event_date = CAST(note AS DATE)"),
        ("my_function(event_date) = 1", "", ""),
        ("rand() < 0.5", "", "RAND() < 0.5"),
        ("id = 1", "", "id = 1"),
    ],
)
def test_only_conjuncts_on_partition_columns_alone_narrow_the_read(condition, partition, data):
    (read,) = only(f"INSERT INTO {{t}} REPLACE WHERE {condition} SELECT * FROM {{other}}").reads
    assert (read.partition, read.data) == (partition, data)


@pytest.mark.parametrize(
    ("condition", "days"),
    [
        (f"event_date = {DAY}", {11}),
        ("event_date = '2026-08-11'", {11}),
        (f"event_date <> {DAY}", {12}),
        (f"event_date > {DAY}", {12}),
        (f"event_date >= {DAY}", {11, 12}),
        (f"event_date IN ({DAY}, DATE'2030-01-01')", {11}),
        (f"event_date BETWEEN {DAY} AND DATE'2026-08-11'", {11}),
        ("day(event_date) = 12", {12}),
        ("date_format(event_date, 'dd') = '12'", {12}),
        ("date_format(event_date, 'E') = 'Wed'", {12}),
        ("date_trunc('month', event_date) = '2026-08-01'", {11, 12}),
        ("date_add(event_date, 1) = DATE'2026-08-12'", {11}),
        ("dayofweek(event_date) = 4", {12}),
        ("event_date + INTERVAL 1 DAY = DATE'2026-08-12'", {11}),
        ("CASE WHEN day(event_date) = 11 THEN true ELSE false END", {11}),
        ("event_date = make_date(2026, 8, 12)", {12}),
        ("pmod(day(event_date), 2) = 0", {12}),
        ("left(CAST(event_date AS STRING), 7) = '2026-07'", set()),
        ("CAST(event_date AS STRING) LIKE '2026-08-1_'", {11, 12}),
        ("CAST(event_date AS STRING) = '2026-08-12'", {12}),
        ("substr(CAST(event_date AS STRING), 9, 2) = '12'", {12}),
        ("coalesce(event_date, DATE'2026-08-12') = DATE'2026-08-12'", {12}),
        ("event_date <=> DATE'2026-08-12'", {12}),
        ("NOT event_date = DATE'2026-08-12'", {11}),
        ("event_date IS NOT NULL", {11, 12}),
        ("event_date IS NULL", set()),
        ("event_date = NULL", set()),
        ("struct(event_date) = struct(DATE'2026-08-11')", {11}),
        ("(event_date, 1) IN ((DATE'2026-08-12', 1), (DATE'2026-08-11', 2))", {12}),
        ("event_date < current_date()", {11, 12}),
        ("event_date = to_date('11.08.2026', 'dd.MM.yyyy')", {11}),
        ("event_date = to_date('11.8.2026', 'dd.MM.yyyy')", {11, 12}),
        ("event_date = to_timestamp('20260812', 'yyyyMMdd')", {12}),
        ("extract(DOY FROM event_date) = 223 AND date_part('days', event_date) = 11", {11}),
        ("extract(CENTURY FROM event_date) = 21", {11, 12}),
        ("weekday(event_date) = 1 AND dayname(event_date) = 'Tue' AND monthname(event_date) = 'Aug'", {11}),
        ("event_date = add_months(DATE'2027-01-31', -5) - INTERVAL 19 DAYS", {12}),
        ("event_date = DATE'2026-09-12' - INTERVAL 1 MONTH", {12}),
        ("INTERVAL '1' YEAR + event_date = DATE'2027-08-11'", {11}),
        ("event_date = last_day(DATE'2026-08-01') - INTERVAL 20 DAYS", {11}),
        ("event_date = next_day(DATE'2026-08-04', 'tuesday')", {11}),
        ("unix_date(event_date) = 20677 AND event_date = date_from_unix_date(20677)", {12}),
        ("event_date = greatest(NULL, DATE'2026-08-11', DATE'2026-08-10')", {11}),
        ("event_date = least(DATE'2026-08-12', DATE'2026-08-13')", {12}),
        ("isnull(nullif(event_date, DATE'2026-08-11'))", {11}),
        ("isnotnull(nullif(event_date, DATE'2026-08-11'))", {12}),
        ("nvl2(event_date, day(event_date), 0) = 12", {12}),
        ("decode(day(event_date), 11, true, 12, false)", {11}),
        ("decode(day(event_date), 11, true)", {11}),
        ("equal_null(event_date, DATE'2026-08-12')", {12}),
        ("event_date RLIKE '-1[2-9]$'", {12}),
        ("event_date RLIKE '(?<=-)11$'", {11, 12}),
        ("regexp_extract(CAST(event_date AS STRING), '(\\\\d+)$', 1) = '11'", {11}),
        ("regexp_replace(CAST(event_date AS STRING), '-', '') = '20260812'", {12}),
        ("split(CAST(event_date AS STRING), '-')[2] = '11'", {11}),
        ("element_at(split(CAST(event_date AS STRING), '-'), -1) = '11'", {11}),
        ("split(CAST(event_date AS STRING), '-')[3] = '11'", {11, 12}),
        ("split(CAST(event_date AS STRING), '.')[0] = '11'", {11, 12}),
        ("array_contains(array(DATE'2026-08-12'), event_date)", {12}),
        ("to_char(event_date, 'yyyy/MM/dd') = '2026/08/11'", {11}),
        ("date_format(event_date, 'd.M.yy') = '11.8.26'", {11}),
        ("date_format(event_date, 'QQQ') = 'none'", {11, 12}),
        ("lpad(day(event_date), 3, '0') = '011'", {11}),
        ("rpad(day(event_date), 1) = '1'", {11, 12}),
        ("substring_index(CAST(event_date AS STRING), '-', -1) = '12'", {12}),
        ("instr(CAST(event_date AS STRING), '-12') = 8", {12}),
        ("locate('-12', CAST(event_date AS STRING), 2) = 0", {11, 12}),
        ("ltrim(CAST(event_date AS STRING)) = ''", {11, 12}),
        ("reverse(CAST(event_date AS STRING)) = '11-80-6202'", {11}),
        ("concat_ws('/', year(event_date), NULL, day(event_date)) = '2026/12'", {12}),
        ("round(day(event_date) / 8) = 1 AND ceil(day(event_date) / 11) = 1", {11}),
        ("round(2.5) = 3 AND sign(day(event_date) - 12) = -1 AND power(day(event_date), 2) = 121", {11}),
    ],
)
def test_a_partition_predicate_covers_the_days_for_which_it_may_hold(condition, days):
    (read,) = only(f"INSERT INTO {{t}} REPLACE WHERE {condition} SELECT * FROM {{other}}").reads
    seen = {day for day in (11, 12) if read.matches({"event_date": datetime.date(2026, 8, day)})}
    assert seen == days


@pytest.mark.parametrize(
    ("on", "clauses", "narrows"),
    [
        ("t.id = s.id", "WHEN MATCHED THEN DELETE", ""),
        ("t.id = s.id AND t.event_date = s.event_date", "WHEN MATCHED THEN DELETE", ""),
        (f"t.id = s.id AND t.event_date = {DAY}", "WHEN MATCHED THEN DELETE", f"t.event_date = {DAY}"),
        (f"t.id = s.id AND s.event_date = {DAY}", "WHEN MATCHED THEN DELETE", ""),
        ("t.id = s.id", f"WHEN MATCHED AND t.event_date = {DAY} THEN DELETE", f"t.event_date = {DAY}"),
        ("t.id = s.id", f"WHEN MATCHED AND t.event_date = {DAY} THEN DELETE WHEN NOT MATCHED THEN INSERT *", ""),
        (
            "t.id = s.id",
            f"WHEN MATCHED AND t.event_date = {DAY} THEN UPDATE SET note = 'a' WHEN MATCHED THEN DELETE",
            "",
        ),
        (
            f"t.id = s.id AND t.event_date = {DAY}",
            "WHEN MATCHED THEN DELETE WHEN NOT MATCHED BY SOURCE THEN DELETE",
            "",
        ),
    ],
)
def test_a_merge_reads_by_the_conjuncts_on_its_target_alone(on, clauses, narrows):
    found = only(f"MERGE INTO {{t}} t USING {SOURCE} s ON {on} {clauses}")
    assert [read.partition for read in found.reads] == [narrows]


@pytest.mark.parametrize(
    ("text", "blind"),
    [
        (f"INSERT INTO {{t}} VALUES (1, {DAY}, 'DE', 1, 'x')", True),
        ("INSERT INTO {t} SELECT * FROM {other}", True),
        ("INSERT INTO {t} SELECT * FROM {t} WHERE id = 1", False),
        ("INSERT INTO {t} SELECT * FROM {other} WHERE id NOT IN (SELECT id FROM {t})", False),
        ("INSERT OVERWRITE {t} SELECT * FROM {other}", False),
        ("ALTER TABLE {t} SET TBLPROPERTIES ('a' = 'b')", True),
        ("DELETE FROM {t}", False),
        ("OPTIMIZE {t}", False),
    ],
)
def test_what_reads_nothing_is_blind(text, blind):
    assert only(text).blind is blind


def test_a_query_in_front_of_an_insert_is_read():
    text = f"WITH a AS (SELECT * FROM {{t}} WHERE event_date = {DAY} AND id = 1) INSERT INTO {{t}} SELECT * FROM a"
    found = only(text)
    assert [read.partition for read in found.reads] == [f"event_date = {DAY}"]
    assert [[row["id"] for row in file.rows] for file in found.adds] == [[1]]


@pytest.mark.parametrize(("query", "value"), [
    ("SELECT count(*) FROM {t} WHERE id = 90", 0), ("SELECT count(*) = 0 AS free FROM {t} WHERE id = 90", True),
    ("SELECT count(1) FROM {t}", 16), ("SELECT count(id) FROM {t} WHERE id > 14", 2),
    ("SELECT max(id) + 1 FROM {t}", 17), ("SELECT min(amount) FROM {t} WHERE id = 90", None),
    ("SELECT sum(amount) FROM {t} WHERE id < 3", 30),
    ("SELECT avg(amount) FROM {t}", UNKNOWN), ("SELECT count(DISTINCT country) FROM {t}", UNKNOWN),
    ("SELECT max(rand()) FROM {t}", UNKNOWN),
])
def test_an_aggregate_makes_one_value_of_all_rows_of_none_too(query, value):
    assert one_value(query.replace("{t}", "lakerace_t"), BY_DATE, SPARK, {}) == value
