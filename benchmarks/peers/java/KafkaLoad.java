import java.time.Duration;
import java.util.List;
import java.util.Properties;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The load of Load.java on Kafka: a topic of one partition for each producer, acks=all. */
public final class KafkaLoad extends Load {
    private KafkaLoad(String[] args) {
        super(args);
    }

    public static void main(String[] args) throws Exception {
        new KafkaLoad(args).run();
    }

    @Override
    Sender connect(String queue) throws Exception {
        Properties sending = new Properties();
        sending.put("bootstrap.servers", uri);
        sending.put("acks", "all");
        // A message of a producer that waits for each one must not wait for company.
        sending.put("linger.ms", "0");
        sending.put("max.block.ms", "60000");
        KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(sending, new ByteArraySerializer(), new ByteArraySerializer());
        // Makes the topic, which a consumer would otherwise look for in vain for a while.
        producer.send(new ProducerRecord<>(queue, body)).get();
        Thread taking = new Thread(() -> consume(queue));
        taking.setDaemon(true);
        taking.start();
        return confirmed ->
                producer.send(
                        new ProducerRecord<>(queue, body),
                        (answer, error) -> {
                            if (error != null) {
                                error.printStackTrace();
                                System.exit(1);
                            }
                            confirmed.run();
                        });
    }

    private void consume(String queue) {
        Properties receiving = new Properties();
        receiving.put("bootstrap.servers", uri);
        receiving.put("group.id", queue);
        receiving.put("auto.offset.reset", "earliest");
        try (KafkaConsumer<byte[], byte[]> consumer =
                new KafkaConsumer<>(
                        receiving, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
            consumer.subscribe(List.of(queue));
            while (true) {
                consumer.poll(Duration.ofMillis(100)).forEach(message -> taken());
            }
        }
    }
}
