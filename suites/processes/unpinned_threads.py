"""Prints what threads see when Python threads are not pinned to threads of the JVM, as one JSON object.

A process of its own, since pinning is decided when the JVM starts. Arguments: the engine line and a folder.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

from pyspark.sql import SparkSession

from lakerace.drivers.threads import in_a_thread
from lakerace.engines.jvm import spark_conf
from lakerace.engines.lines import line


def main(name: str, folder: Path) -> None:
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ["PYSPARK_PIN_THREAD"] = "false"
    (folder / "tmp").mkdir(exist_ok=True)
    builder = SparkSession.builder.master("local[1]").appName("unpinned threads")
    for key, value in spark_conf(line(name), folder).items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    try:
        from delta.tables import DeltaTable

        path = str(folder / "table")
        spark.range(4).write.format("delta").save(path)
        found = {
            "update": in_a_thread(lambda: DeltaTable.forPath(spark, path).update("id = 1", {"id": "10"})),
            "delete": in_a_thread(lambda: DeltaTable.forPath(spark, path).delete("id = 2")),
            "read": in_a_thread(lambda: DeltaTable.forPath(spark, path).toDF().count()),
            "history": in_a_thread(lambda: DeltaTable.forPath(spark, path).history().count()),
            "optimize": in_a_thread(lambda: DeltaTable.forPath(spark, path).optimize().executeCompaction().count()),
            "sql": in_a_thread(lambda: spark.sql(f"DELETE FROM delta.`{path}` WHERE id = 3").collect()[0][0]),
        }
        in_a_thread(lambda: spark.sparkContext.setLocalProperty("lakerace.mine", "yes"))
        found["leaks"] = in_a_thread(lambda: spark.sparkContext.getLocalProperty("lakerace.mine"))
        print(json.dumps(found, default=repr))
    finally:
        spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
