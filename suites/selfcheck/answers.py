"""What the tests of `lakerace race` share: two statements that conflict, and the fields that every answer has."""

UPDATE = "UPDATE {t} SET note = 'x' WHERE id = 1"
DELETE = "DELETE FROM {t} WHERE id = 2"
JSON_KEYS = frozenset(
    ("engine", "layout", "isolation", "driver", "order", "overlap", "writers", "history", "rows_before", "rows_after",
     "files")
)
