// Apache Kafka's own client.

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Base64;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.Future;
import java.util.concurrent.TimeUnit;
import java.util.function.Function;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.OffsetAndTimestamp;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.RebalanceInProgressException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.internals.RecordHeader;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public final class Arm {
    private static final ObjectMapper JSON = new ObjectMapper();
    private static final Duration POLL = Duration.ofMillis(200);
    private static final int PATIENCE_S = 30;
    // Events that are read before they are committed.
    private static final int BATCH = 500;

    private final JsonNode asked;

    private Arm(JsonNode asked) {
        this.asked = asked;
    }

    private interface Each {
        void of(List<ConsumerRecord<byte[], byte[]>> read) throws Exception;
    }

    // Callbacks speak too.
    private static synchronized void say(Map<String, ?> what) {
        try {
            System.out.println(JSON.writeValueAsString(what));
        } catch (IOException fault) {
            throw new UncheckedIOException(fault);
        }
    }

    private static byte[] unpack(JsonNode text) {
        return text.isNull() ? null : Base64.getDecoder().decode(text.asText());
    }

    private static String pack(byte[] data) {
        return data == null ? null : Base64.getEncoder().encodeToString(data);
    }

    private static void sayRecord(ConsumerRecord<byte[], byte[]> one) {
        List<List<String>> headers = new ArrayList<>();
        for (Header header : one.headers()) {
            List<String> pair = new ArrayList<>();
            pair.add(header.key());
            pair.add(pack(header.value()));
            headers.add(pair);
        }
        Map<String, Object> event = new HashMap<>();
        event.put("p", one.partition());
        event.put("o", one.offset());
        event.put("t", one.timestamp());
        event.put("k", pack(one.key()));
        event.put("v", pack(one.value()));
        event.put("h", headers);
        say(event);
    }

    private Map<String, Object> config(Map<String, Object> more) {
        Map<String, Object> config = new HashMap<>(more);
        config.put("bootstrap.servers", asked.get("bootstrap").asText());
        return config;
    }

    private String topic() {
        return asked.get("topic").asText();
    }

    private KafkaProducer<byte[], byte[]> producer(String codec, boolean idempotent) {
        Map<String, Object> config = config(Map.of("compression.type", codec, "enable.idempotence", idempotent, "linger.ms", 5));
        return new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private void produce() throws Exception {
        List<Future<RecordMetadata>> sent = new ArrayList<>();
        try (var to = producer(asked.get("codec").asText(), asked.get("idempotent").asBoolean())) {
            for (String line : Files.readAllLines(Path.of(asked.get("file").asText()))) {
                JsonNode one = JSON.readTree(line);
                List<Header> headers = new ArrayList<>();
                for (JsonNode pair : one.get("h")) {
                    headers.add(new RecordHeader(pair.get(0).asText(), unpack(pair.get(1))));
                }
                sent.add(to.send(new ProducerRecord<>(
                    topic(), one.get("p").asInt(), one.get("t").asLong(), unpack(one.get("k")), unpack(one.get("v")), headers)));
            }
            to.flush();
            for (var future : sent) {
                future.get(PATIENCE_S, TimeUnit.SECONDS);
            }
        }
        say(Map.of("produced", sent.size()));
    }

    private KafkaConsumer<byte[], byte[]> consumer(Map<String, Object> more) {
        return new KafkaConsumer<>(config(more), new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private List<TopicPartition> allPartitions() {
        return IntStream.range(0, asked.get("partitions").asInt()).mapToObj(p -> new TopicPartition(topic(), p)).toList();
    }

    private void consume() {
        int left = asked.get("count").asInt();
        try (var from = consumer(Map.of("enable.auto.commit", false))) {
            from.assign(allPartitions());
            from.seekToBeginning(allPartitions());
            while (left > 0) {
                for (var one : from.poll(POLL)) {
                    sayRecord(one);
                    left--;
                }
            }
        }
    }

    private static <T> Map<String, Object> by(Map<TopicPartition, T> found, Function<T, Long> offset) {
        Map<String, Object> places = new HashMap<>();
        found.forEach((partition, place) -> places.put(String.valueOf(partition.partition()), offset.apply(place)));
        return places;
    }

    private void offsets() {
        try (var from = consumer(Map.of())) {
            List<Object> at = new ArrayList<>();
            for (JsonNode timestamp : asked.get("timestamps")) {
                Map<TopicPartition, Long> times = allPartitions().stream().collect(Collectors.toMap(p -> p, p -> timestamp.asLong()));
                Map<TopicPartition, OffsetAndTimestamp> found = from.offsetsForTimes(times);
                at.add(by(found, place -> place == null ? -1 : place.offset()));
            }
            say(Map.of(
                "earliest", by(from.beginningOffsets(allPartitions()), offset -> offset),
                "latest", by(from.endOffsets(allPartitions()), offset -> offset), "at", at));
        }
    }

    // Reads as a member of the group until it has read enough, or is to leave; how many it read.
    private int runMember(boolean silent, Each each) throws Exception {
        int enough = asked.has("count") ? asked.get("count").asInt() : Integer.MAX_VALUE;
        Map<String, Object> config = Map.of(
            "group.id", asked.get("group").asText(), "auto.offset.reset", "earliest", "enable.auto.commit", false,
            "session.timeout.ms", 6000, "heartbeat.interval.ms", 500, "max.poll.records", BATCH);
        int count = 0;
        try (var from = consumer(config)) {
            from.subscribe(List.of(topic()), new ConsumerRebalanceListener() {
                private void tell() {
                    if (!silent) {
                        say(Map.of("assigned", from.assignment().stream().map(TopicPartition::partition).toList()));
                    }
                }

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> added) {
                    tell();
                }

                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> lost) {
                    if (!silent) {
                        say(Map.of("assigned", List.of()));
                    }
                }
            });
            Thread end = new Thread(Arm::drainInput);
            end.setDaemon(true);
            end.start();
            while (count < enough && end.isAlive()) {
                List<ConsumerRecord<byte[], byte[]>> read = new ArrayList<>();
                Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
                for (var one : from.poll(POLL)) {
                    if (count + read.size() < enough) {
                        read.add(one);
                        ends.put(new TopicPartition(one.topic(), one.partition()), new OffsetAndMetadata(one.offset() + 1));
                    }
                }
                if (read.isEmpty()) {
                    continue;
                }
                each.of(read);
                count += read.size();
                try {
                    from.commitSync(ends);
                } catch (CommitFailedException | RebalanceInProgressException fault) {
                    // Whoever gets the partition reads it again.
                    System.err.println(fault);
                }
            }
        }
        return count;
    }

    private static void drainInput() {
        try {
            System.in.readAllBytes();
        } catch (IOException fault) {
            throw new UncheckedIOException(fault);
        }
    }

    private void member() throws Exception {
        runMember(false, read -> read.forEach(Arm::sayRecord));
        say(Map.of("left", true));
    }

    private void copy() throws Exception {
        String target = asked.get("to").asText();
        try (var to = producer("none", true)) {
            int count = runMember(true, read -> {
                List<Future<RecordMetadata>> sent = new ArrayList<>();
                for (var one : read) {
                    sent.add(to.send(new ProducerRecord<>(
                        target, one.partition(), one.timestamp(), one.key(), one.value(), one.headers())));
                }
                to.flush();
                for (var future : sent) {
                    future.get(PATIENCE_S, TimeUnit.SECONDS);
                }
            });
            say(Map.of("copied", count));
        }
    }

    private void admin() {
        try (var client = Admin.create(config(Map.of()))) {
            for (JsonNode step : asked.get("steps")) {
                Map<String, ?> said;
                try {
                    said = run(client, step);
                } catch (Exception fault) {
                    said = Map.of("error", fault.toString());
                }
                say(said);
            }
        }
    }

    private static <T> T done(KafkaFuture<T> future) throws Exception {
        return future.get(PATIENCE_S, TimeUnit.SECONDS);
    }

    private static Map<String, ?> run(Admin client, JsonNode step) throws Exception {
        String topic = step.path("topic").asText();
        String group = step.path("group").asText();
        ConfigResource resource = new ConfigResource(ConfigResource.Type.TOPIC, topic);
        switch (step.get("do").asText()) {
            case "cluster": {
                var found = client.describeCluster();
                List<Object> brokers = new ArrayList<>();
                done(found.nodes()).forEach(node -> brokers.add(List.of(node.host(), node.port())));
                return Map.of("cluster", done(found.clusterId()), "controller", done(found.controller()).id(), "brokers", brokers);
            }
            case "create": {
                NewTopic fresh = new NewTopic(topic, step.get("partitions").asInt(), (short) 1);
                done(client.createTopics(List.of(fresh.configs(configs(step)))).all());
                return Map.of();
            }
            case "topics":
                return Map.of("topics", done(client.listTopics().names()));
            case "describe":
                return Map.of("partitions", done(client.describeTopics(List.of(topic)).allTopicNames()).get(topic).partitions().size());
            case "configs": {
                Map<String, String> found = new HashMap<>();
                done(client.describeConfigs(List.of(resource)).all()).get(resource).entries()
                    .forEach(entry -> found.put(entry.name(), entry.value()));
                return Map.of("configs", found);
            }
            case "alter": {
                Collection<AlterConfigOp> changes = new ArrayList<>();
                configs(step).forEach((name, value) -> changes.add(new AlterConfigOp(new ConfigEntry(name, value), AlterConfigOp.OpType.SET)));
                done(client.incrementalAlterConfigs(Map.of(resource, changes)).all());
                return Map.of();
            }
            case "partitions":
                done(client.createPartitions(Map.of(topic, NewPartitions.increaseTo(step.get("count").asInt()))).all());
                return Map.of();
            case "delete_records": {
                TopicPartition partition = new TopicPartition(topic, step.get("partition").asInt());
                done(client.deleteRecords(Map.of(partition, RecordsToDelete.beforeOffset(step.get("before").asLong()))).all());
                return Map.of();
            }
            case "delete":
                done(client.deleteTopics(List.of(topic)).all());
                return Map.of();
            case "groups":
                return Map.of("groups", done(client.listGroups().all()).stream().map(GroupListing::groupId).toList());
            case "group": {
                var found = done(client.describeConsumerGroups(List.of(group)).all()).get(group);
                return Map.of("state", found.groupState().toString(), "members", found.members().size());
            }
            case "committed": {
                var found = done(client.listConsumerGroupOffsets(group).partitionsToOffsetAndMetadata());
                found.keySet().removeIf(partition -> !partition.topic().equals(topic));
                return Map.of("committed", by(found, place -> place.offset()));
            }
            case "delete_group":
                done(client.deleteConsumerGroups(List.of(group)).all());
                return Map.of();
            default:
                throw new IllegalArgumentException("no such step");
        }
    }

    private static Map<String, String> configs(JsonNode step) {
        Map<String, String> found = new HashMap<>();
        step.get("configs").properties().forEach(entry -> found.put(entry.getKey(), entry.getValue().asText()));
        return found;
    }

    private static void version() throws IOException {
        Properties properties = new Properties();
        properties.load(KafkaConsumer.class.getResourceAsStream("/kafka/kafka-version.properties"));
        say(Map.of("version", properties.getProperty("version")));
    }

    public static void main(String[] arguments) throws Exception {
        Arm arm = new Arm(JSON.readTree(arguments[0]));
        switch (arm.asked.get("verb").asText()) {
            case "version" -> version();
            case "produce" -> arm.produce();
            case "consume" -> arm.consume();
            case "offsets" -> arm.offsets();
            case "member" -> arm.member();
            case "copy" -> arm.copy();
            case "admin" -> arm.admin();
            default -> throw new IllegalArgumentException("no such verb");
        }
    }
}
