"""What the tests of the rules on SQL share: tables, and what a statement plans to do on one of them."""

from __future__ import annotations

from lakerace.layouts import LAYOUTS, NO_TABLE
from lakerace.race import Statement
from lakerace.rules.profiles import PROFILES
from lakerace.rules.statements import plan
from lakerace.rules.tables import table_of

BY_DATE = table_of(LAYOUTS["by-date"])
TWO = table_of(LAYOUTS["by-date-country"])
FLAT = table_of(LAYOUTS["flat"])
NOTHING = table_of(NO_TABLE)
VECTORS = table_of(LAYOUTS["flat-dv"])
SPARK = PROFILES["delta-4.4"]
DAY = "DATE'2026-08-11'"


def planned(text, table=BY_DATE, profile=SPARK):
    return plan(Statement(name="drawn", does=text), table, profile)


def only(text, table=BY_DATE, profile=SPARK):
    (found,) = planned(text, table, profile).transactions
    return found
