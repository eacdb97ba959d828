// A worker with Kafka's Java client, in the consumer protocol: it prints the lines of text files, which a group shares.
//
//     KCOORD_TOKEN=… java -cp 'jars/*' Worker.java DIRECTORY
//
// Partition 3 of topic `lines` is the file DIRECTORY/3.txt, and an offset is a line number. The topic has to exist.
// KCOORD_KAFKA says where the service listens for Kafka clients. `jars` has kafka-clients and what it needs.

import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.kafka.clients.consumer.CommitFailedException;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Worker {
    static final int BATCH = 20; // lines of a partition between two commits
    static volatile boolean running = true;

    static String env(String name, String otherwise) {
        return System.getenv().getOrDefault(name, otherwise);
    }

    public static void main(String[] arguments) throws Exception {
        Path directory = Path.of(arguments[0]);
        Properties settings = new Properties();
        settings.put("bootstrap.servers", env("KCOORD_KAFKA", "127.0.0.1:9092"));
        settings.put("group.id", env("KCOORD_GROUP", "lines-java"));
        settings.put("group.protocol", "consumer");
        settings.put("security.protocol", "SASL_PLAINTEXT");
        settings.put("sasl.mechanism", "PLAIN");
        settings.put("sasl.jaas.config", "org.apache.kafka.common.security.plain.PlainLoginModule required"
                + " username=\"worker\" password=\"" + System.getenv("KCOORD_TOKEN") + "\";");
        settings.put("enable.auto.commit", "false");
        settings.put("auto.offset.reset", "earliest");
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());

        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            running = false;
            try {
                main.join();
            } catch (InterruptedException stopped) {
                Thread.currentThread().interrupt();
            }
        }));
        Map<TopicPartition, Long> places = new ConcurrentHashMap<>();
        try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings)) {
            consumer.subscribe(List.of("lines"), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
                    assigned.forEach(partition -> places.put(partition, consumer.position(partition)));
                }

                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
                    revoked.forEach(places::remove);
                }
            });
            while (running) {
                consumer.poll(Duration.ofMillis(100)); // rebalances happen here; there are never records
                try {
                    work(consumer, places, directory);
                } catch (CommitFailedException error) {
                    System.err.println("not committed, another worker may do these lines again: " + error);
                }
            }
        }
    }

    static void work(KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, Long> places, Path directory)
            throws Exception {
        for (TopicPartition partition : List.copyOf(places.keySet())) {
            List<String> lines = Files.readAllLines(directory.resolve(partition.partition() + ".txt"));
            long from = places.get(partition);
            long to = Math.min(from + BATCH, lines.size());
            for (long number = from; number < to; number++) {
                System.out.println(partition.partition() + " " + number + " " + lines.get((int) number));
            }
            if (to > from) {
                places.put(partition, to);
                consumer.commitSync(Map.of(partition, new OffsetAndMetadata(to)));
            }
        }
    }
}
