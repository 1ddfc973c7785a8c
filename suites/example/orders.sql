-- The orders table as production has it: one partition a day, one file a load.
CREATE TABLE {t} (order_id BIGINT, order_date DATE, status STRING) USING delta PARTITIONED BY (order_date);
INSERT INTO {t} VALUES (1, DATE'2026-03-01', 'open'), (2, DATE'2026-03-01', 'open');
INSERT INTO {t} VALUES (3, DATE'2026-03-02', 'open'), (4, DATE'2026-03-02', 'open');
