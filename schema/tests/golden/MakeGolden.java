import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import org.apache.kafka.common.compress.Compression;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.record.*;

/** Writes record batches with the classes of Apache Kafka's own Java client; README.md tells how to run it. */
public class MakeGolden {
    static final long TIME = 1_700_000_000_000L;
    static Path folder;

    static byte[] bytes(String text) {
        return text == null ? null : text.getBytes(StandardCharsets.UTF_8);
    }

    static Header header(String key, String value) {
        return new RecordHeader(key, bytes(value));
    }

    static MemoryRecordsBuilder builder(Compression compression, TimestampType type, long producer, int epoch, int sequence) {
        return MemoryRecords.builder(ByteBuffer.allocate(1 << 16), RecordBatch.MAGIC_VALUE_V2, compression, type,
            0L, TIME + 5000, producer, (short) epoch, sequence, false, RecordBatch.NO_PARTITION_LEADER_EPOCH);
    }

    /** Null and empty keys and values, headers of all kinds, lengths of two bytes, timestamps that go back. */
    static void corners(MemoryRecordsBuilder builder) {
        Header[] none = {};
        builder.append(TIME, bytes("key"), bytes("value"), none);
        builder.append(TIME + 1, null, bytes("no key"), none);
        builder.append(TIME - 70_000, bytes("no value"), null, none);
        builder.append(TIME + 90_000_000_000L, bytes(""), bytes(""),
            new Header[] {header("a", "1"), header("a", null), header("ä", ""), header("", "empty name")});
        builder.append(TIME + 3, bytes("k".repeat(64)), bytes("v".repeat(300)), none);
    }

    static void many(MemoryRecordsBuilder builder) {
        for (int i = 0; i < 2000; i++) {
            builder.append(TIME + i, bytes("key-" + i % 7), bytes("{\"number\":" + i + ",\"square\":" + (long) i * i + "}"),
                new Header[] {});
        }
    }

    static void write(String name, MemoryRecordsBuilder builder) throws Exception {
        ByteBuffer buffer = builder.build().buffer();
        byte[] bytes = new byte[buffer.remaining()];
        buffer.get(bytes);
        Files.write(folder.resolve(name + ".bin"), bytes);
    }

    public static void main(String[] arguments) throws Exception {
        folder = Paths.get(arguments[0]);
        MemoryRecordsBuilder builder = builder(Compression.NONE, TimestampType.CREATE_TIME, -1, -1, -1);
        corners(builder);
        write("java-plain", builder);

        builder = builder(Compression.NONE, TimestampType.CREATE_TIME, 4_000_000_007L, 3, 2147483646);
        corners(builder);
        write("java-idempotent", builder);

        builder = builder(Compression.NONE, TimestampType.LOG_APPEND_TIME, -1, -1, -1);
        corners(builder);
        write("java-append-time", builder);

        Compression[] codecs = {Compression.gzip().build(), Compression.snappy().build(), Compression.lz4().build(),
            Compression.zstd().build()};
        for (Compression codec : codecs) {
            builder = builder(codec, TimestampType.CREATE_TIME, -1, -1, -1);
            many(builder);
            write("java-" + codec.type().name, builder);
        }

        ByteBuffer marker = ByteBuffer.allocate(1 << 10);
        MemoryRecords.writeEndTransactionalMarker(marker, 41, TIME, -1, 9, (short) 1,
            new EndTransactionMarker(ControlRecordType.COMMIT, 6));
        marker.flip();
        byte[] bytes = new byte[marker.remaining()];
        marker.get(bytes);
        Files.write(folder.resolve("java-marker.bin"), bytes);
    }
}
