import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.activemq.artemis.api.core.ActiveMQException;
import org.apache.activemq.artemis.api.core.QueueConfiguration;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.api.core.client.ActiveMQClient;
import org.apache.activemq.artemis.api.core.client.ClientMessage;
import org.apache.activemq.artemis.api.core.client.ClientProducer;
import org.apache.activemq.artemis.api.core.client.ClientSession;
import org.apache.activemq.artemis.api.core.client.ClientSessionFactory;
import org.apache.activemq.artemis.api.core.client.ServerLocator;

/**
 * Load on a broker by the reference's Core client: producers, each with a connection and a queue of
 * its own and a consumer on it, and how long each send took to be confirmed.
 *
 * Arguments: uri user password producers window size durable|volatile consumers|none warm_s run_s.
 * A window of 1 is a blocking send. Prints one line of JSON: messages per second confirmed and
 * received while the clock ran, and percentiles of the confirmation in microseconds.
 */
public final class CoreLoad {
    private static final int SAMPLES_MAX = 4_000_000;

    private final String uri;
    private final String user;
    private final String password;
    private final int window;
    private final byte[] body;
    private final boolean durable;
    private final boolean consume;
    private final AtomicLong confirmed = new AtomicLong();
    private final AtomicLong received = new AtomicLong();
    private volatile boolean measuring;
    private volatile boolean ended;
    private volatile Throwable failure;

    private CoreLoad(String[] args) {
        uri = args[0];
        user = args[1];
        password = args[2];
        window = Integer.parseInt(args[4]);
        body = new byte[Integer.parseInt(args[5])];
        durable = args[6].equals("durable");
        consume = args[7].equals("consumers");
    }

    public static void main(String[] args) throws Exception {
        new CoreLoad(args)
                .run(
                        Integer.parseInt(args[3]),
                        Double.parseDouble(args[8]),
                        Double.parseDouble(args[9]));
        System.exit(0);
    }

    private void run(int producers, double warm, double seconds) throws Exception {
        Producer[] threads = new Producer[producers];
        CountDownLatch ready = new CountDownLatch(producers);
        for (int i = 0; i < producers; i++) {
            threads[i] = new Producer("load." + ProcessHandle.current().pid() + "." + i, ready);
            threads[i].start();
        }
        ready.await();
        Thread.sleep((long) (warm * 1000));
        long confirmedBefore = confirmed.get();
        long receivedBefore = received.get();
        long start = System.nanoTime();
        measuring = true;
        Thread.sleep((long) (seconds * 1000));
        measuring = false;
        double took = (System.nanoTime() - start) / 1e9;
        long sent = confirmed.get() - confirmedBefore;
        long taken = received.get() - receivedBefore;
        ended = true;
        if (failure != null) {
            throw new IllegalStateException(failure);
        }
        long[] all = new long[0];
        for (Producer one : threads) {
            int count = Math.min(one.sampled.get(), one.samples.length);
            int at = all.length;
            all = Arrays.copyOf(all, at + count);
            System.arraycopy(one.samples, 0, all, at, count);
        }
        Arrays.sort(all);
        System.out.printf(
                Locale.ROOT,
                "{\"confirmed_per_s\": %.1f, \"received_per_s\": %.1f, \"p50_us\": %.1f,"
                        + " \"p99_us\": %.1f}%n",
                sent / took,
                taken / took,
                percentile(all, 0.5),
                percentile(all, 0.99));
        System.out.flush();
    }

    private static double percentile(long[] sorted, double share) {
        if (sorted.length == 0) {
            return 0;
        }
        return sorted[(int) Math.min(sorted.length - 1, Math.round(share * sorted.length))] / 1e3;
    }

    private final class Producer extends Thread {
        private final String queue;
        private final CountDownLatch ready;
        private final long[] samples;
        private final java.util.concurrent.atomic.AtomicInteger sampled =
                new java.util.concurrent.atomic.AtomicInteger();

        Producer(String queue, CountDownLatch ready) {
            this.queue = queue;
            this.ready = ready;
            samples = new long[SAMPLES_MAX / 16];
            setDaemon(true);
        }

        @Override
        public void run() {
            try {
                load();
            } catch (Throwable error) {
                if (!ended) {
                    failure = error;
                    error.printStackTrace();
                    System.exit(1);
                }
            }
        }

        private void load() throws Exception {
            ServerLocator locator = ActiveMQClient.createServerLocator(uri);
            boolean blocking = window == 1;
            locator.setBlockOnDurableSend(blocking).setBlockOnNonDurableSend(blocking);
            if (!blocking) {
                locator.setConfirmationWindowSize(10 << 20);
            }
            locator.setProducerWindowSize(-1);
            ClientSessionFactory factory = locator.createSessionFactory();
            ClientSession session =
                    factory.createSession(user, password, false, true, true, false, 1 << 20);
            session.createQueue(QueueConfiguration.of(queue).setRoutingType(RoutingType.ANYCAST));
            if (consume) {
                ClientSessionFactory other = locator.createSessionFactory();
                ClientSession taking =
                        other.createSession(user, password, false, true, true, false, 1 << 20);
                taking.createConsumer(queue)
                        .setMessageHandler(this::take);
                taking.start();
            }
            ClientProducer producer = session.createProducer(queue);
            ready.countDown();
            Semaphore room = new Semaphore(window);
            while (!ended) {
                ClientMessage message = session.createMessage(durable);
                message.getBodyBuffer().writeBytes(body);
                if (blocking) {
                    long start = System.nanoTime();
                    producer.send(message);
                    confirm(System.nanoTime() - start);
                } else {
                    room.acquire();
                    long start = System.nanoTime();
                    producer.send(
                            message,
                            done -> {
                                confirm(System.nanoTime() - start);
                                room.release();
                            });
                }
            }
        }

        private void take(ClientMessage message) {
            try {
                message.acknowledge();
            } catch (ActiveMQException error) {
                failure = error;
            }
            received.incrementAndGet();
        }

        private void confirm(long took) {
            confirmed.incrementAndGet();
            if (measuring) {
                int at = sampled.getAndIncrement();
                if (at < samples.length) {
                    samples[at] = took;
                }
            }
        }
    }
}
