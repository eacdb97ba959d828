// A share consumer with Kafka's Java client, for tests: it subscribes and polls until something is thrown.
//
//     java -cp 'jars/*' Share.java PROPERTIES TOPIC SECONDS
//
// It prints "polled N" with the number of records, or "! " and the class of what was thrown.

import java.io.FileReader;
import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

public class Share {
    public static void main(String[] arguments) throws Exception {
        Properties settings = new Properties();
        try (FileReader file = new FileReader(arguments[0])) {
            settings.load(file);
        }
        ByteArrayDeserializer bytes = new ByteArrayDeserializer();
        int polled = 0;
        try (KafkaShareConsumer<byte[], byte[]> consumer = new KafkaShareConsumer<>(settings, bytes, bytes)) {
            consumer.subscribe(List.of(arguments[1]));
            long end = System.nanoTime() + Long.parseLong(arguments[2]) * 1_000_000_000L;
            while (System.nanoTime() < end) {
                polled += consumer.poll(Duration.ofMillis(500)).count();
            }
            System.out.println("polled " + polled);
        } catch (Exception error) {
            System.out.println("! " + error.getClass().getSimpleName() + " " + error.getMessage());
        }
    }
}
