import java.util.Locale;
import java.util.concurrent.Semaphore;
import org.apache.activemq.artemis.api.core.QueueConfiguration;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.api.core.client.ActiveMQClient;
import org.apache.activemq.artemis.api.core.client.ClientConsumer;
import org.apache.activemq.artemis.api.core.client.ClientMessage;
import org.apache.activemq.artemis.api.core.client.ClientProducer;
import org.apache.activemq.artemis.api.core.client.ClientSession;
import org.apache.activemq.artemis.api.core.client.ClientSessionFactory;
import org.apache.activemq.artemis.api.core.client.ServerLocator;

/**
 * Fills a queue with durable messages, then takes them all by Artemis's Core client.
 *
 * Arguments: uri user password count size rounds. Acknowledgements go in batches of 100 KiB, and
 * closing the consumer waits for the last one. Prints one line of JSON a round: seconds of the
 * taking, the first round with a client that is not warm yet.
 */
public final class CoreDrain {
    private static final int IN_FLIGHT = 1000;
    private static final int ACKNOWLEDGED_TOGETHER = 100 * 1024;
    private static final long TIMEOUT_MS = 120_000;

    private CoreDrain() {}

    public static void main(String[] args) throws Exception {
        int count = Integer.parseInt(args[3]);
        int size = Integer.parseInt(args[4]);
        int rounds = Integer.parseInt(args[5]);
        ServerLocator locator = ActiveMQClient.createServerLocator(args[0]);
        locator.setBlockOnDurableSend(false).setConfirmationWindowSize(10 << 20);
        locator.setProducerWindowSize(-1);
        ClientSessionFactory factory = locator.createSessionFactory();
        ClientSession session =
                factory.createSession(
                        args[1], args[2], false, true, true, false, ACKNOWLEDGED_TOGETHER);
        for (int round = 0; round < rounds; round++) {
            String queue = "drained." + round;
            session.createQueue(QueueConfiguration.of(queue).setRoutingType(RoutingType.ANYCAST));
            fill(session, queue, count, size);
            System.out.printf(Locale.ROOT, "{\"drain_s\": %.3f}%n", drain(session, queue, count));
            System.out.flush();
        }
        System.exit(0);
    }

    private static void fill(ClientSession session, String queue, int count, int size)
            throws Exception {
        byte[] body = new byte[size];
        Semaphore room = new Semaphore(IN_FLIGHT);
        try (ClientProducer producer = session.createProducer(queue)) {
            for (int i = 0; i < count; i++) {
                ClientMessage message = session.createMessage(true);
                message.getBodyBuffer().writeBytes(body);
                message.putIntProperty("number", i);
                room.acquire();
                producer.send(message, done -> room.release());
            }
            room.acquire(IN_FLIGHT);
        }
    }

    private static double drain(ClientSession session, String queue, int count) throws Exception {
        long start = System.nanoTime();
        ClientConsumer consumer = session.createConsumer(queue);
        session.start();
        for (int i = 0; i < count; i++) {
            ClientMessage message = consumer.receive(TIMEOUT_MS);
            if (message == null || message.getIntProperty("number") != i) {
                throw new IllegalStateException("message " + i + " has not come: " + message);
            }
            message.acknowledge();
        }
        consumer.close();
        double took = (System.nanoTime() - start) / 1e9;
        session.stop();
        return took;
    }
}
