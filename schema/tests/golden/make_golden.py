"""Writes record batches with kafka-python; README.md tells how to run it."""

import sys
from pathlib import Path

from kafka.record.default_records import DefaultRecordBatchBuilder as Builder

TIME = 1_700_000_000_000
CODECS = {"gzip": 1, "snappy": 2, "lz4": 3, "zstd": 4}


def many(codec):
    builder = Builder(
        magic=2,
        compression_type=codec,
        is_transactional=0,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        batch_size=1 << 20,
    )
    for i in range(2000):
        value = '{"number":%d,"square":%d}' % (i, i * i)
        builder.append(i, TIME + i, b"key-%d" % (i % 7), value.encode(), [])
    return bytes(builder.build())


folder = Path(sys.argv[1])
for name, codec in CODECS.items():
    (folder / f"kafka-python-{name}.bin").write_bytes(many(codec))
