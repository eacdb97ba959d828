// A member with Kafka's Java client, for tests: it polls, and does what the lines of its standard input ask.
//
//     java -cp 'jars/*' Member.java PROPERTIES TOPIC
//
// A topic that begins with ^ is a pattern, which the server resolves.
// It answers each line with one line: "= " and what was asked for, or "! " and the error. Partitions that it has to give
// up are a line of their own: "revoked 0 1".

import java.io.BufferedReader;
import java.io.FileReader;
import java.io.InputStreamReader;
import java.time.Duration;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.stream.Collectors;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.consumer.SubscriptionPattern;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

public class Member {
    static final Properties settings = new Properties();
    static KafkaConsumer<byte[], byte[]> consumer;
    static KafkaProducer<byte[], byte[]> producer;
    static String topic;

    public static void main(String[] arguments) throws Exception {
        try (FileReader file = new FileReader(arguments[0])) {
            settings.load(file);
        }
        topic = arguments[1];
        LinkedBlockingQueue<String> asked = new LinkedBlockingQueue<>();
        Thread reader = new Thread(() -> {
            new BufferedReader(new InputStreamReader(System.in)).lines().forEach(asked::add);
            asked.add("close");
        });
        reader.setDaemon(true);
        reader.start();
        consumer = new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
        ConsumerRebalanceListener listener = new ConsumerRebalanceListener() {
            @Override
            public void onPartitionsAssigned(Collection<TopicPartition> assigned) {}

            @Override
            public void onPartitionsRevoked(Collection<TopicPartition> revoked) {
                System.out.println("revoked " + numbers(revoked));
            }
        };
        if (topic.startsWith("^")) {
            consumer.subscribe(new SubscriptionPattern(topic), listener);
        } else {
            consumer.subscribe(List.of(topic), listener);
        }
        while (true) {
            consumer.poll(Duration.ofMillis(20));
            String line = asked.poll();
            if (line == null) {
                continue;
            }
            if (line.equals("close")) {
                break;
            }
            try {
                System.out.println("= " + answer(line.split(" ")));
            } catch (RuntimeException error) {
                System.out.println("! " + error);
            }
        }
        consumer.close();
        if (producer != null) {
            producer.close();
        }
        System.out.println("= closed");
    }

    static String answer(String[] words) {
        switch (words[0]) {
            case "numbers":
                return numbers(consumer.assignment());
            case "commit":
                consumer.commitSync(offset(words));
                return "";
            case "committed":
                TopicPartition where = new TopicPartition(topic, Integer.parseInt(words[1]));
                OffsetAndMetadata found = consumer.committed(Set.of(where)).get(where);
                return found == null ? "-1" : Long.toString(found.offset());
            case "transaction":
                if (producer == null) {
                    producer = new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
                    producer.initTransactions();
                }
                producer.beginTransaction();
                producer.sendOffsetsToTransaction(offset(words), consumer.groupMetadata());
                if (words[3].equals("commit")) {
                    producer.commitTransaction();
                } else {
                    producer.abortTransaction();
                }
                return "";
            default:
                throw new IllegalArgumentException(words[0]);
        }
    }

    static Map<TopicPartition, OffsetAndMetadata> offset(String[] words) {
        TopicPartition where = new TopicPartition(topic, Integer.parseInt(words[1]));
        return Map.of(where, new OffsetAndMetadata(Long.parseLong(words[2])));
    }

    static String numbers(Collection<TopicPartition> partitions) {
        return partitions.stream().map(partition -> "" + partition.partition()).collect(Collectors.joining(" "));
    }
}
