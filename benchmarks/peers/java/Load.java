import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.locks.LockSupport;

/**
 * The frame of a load on a broker, whatever its protocol: producers, each with a connection and a
 * queue of its own and a consumer on it, and how long each send took to be confirmed.
 *
 * Arguments: uri user password producers window size durable|volatile rate warm_s run_s.
 * With a window of 1 a producer sends when the last message was confirmed. With a rate, messages a
 * second of all producers, each has its moment, and the confirmation is timed from that: who falls
 * behind pays for it; 0 sends as fast as it goes. Prints one line of JSON: messages per second
 * confirmed and received while the clock ran, and percentiles of the confirmation in microseconds.
 */
abstract class Load {
    private static final int SAMPLES_MAX = 250_000;

    final String uri;
    final String user;
    final String password;
    final byte[] body;
    final boolean durable;
    private final int producers;
    final int window;
    private final double rate;
    private final double warm;
    private final double seconds;
    private final AtomicLong confirmed = new AtomicLong();
    private final AtomicLong received = new AtomicLong();
    private final AtomicInteger sampled = new AtomicInteger();
    private final long[] samples = new long[4 * SAMPLES_MAX];
    private volatile boolean measuring;
    private volatile boolean ended;

    Load(String[] args) {
        uri = args[0];
        user = args[1];
        password = args[2];
        producers = Integer.parseInt(args[3]);
        window = Integer.parseInt(args[4]);
        body = new byte[Integer.parseInt(args[5])];
        durable = args[6].equals("durable");
        rate = Double.parseDouble(args[7]);
        warm = Double.parseDouble(args[8]);
        seconds = Double.parseDouble(args[9]);
    }

    /** One producer's end: sends a message, and has `confirmed` run once it was confirmed. */
    interface Sender {
        void send(Runnable confirmed) throws Exception;
    }

    /** Connect a producer and a consumer on a queue of their own. */
    abstract Sender connect(String queue) throws Exception;

    /** A consumer has one more. */
    final void taken() {
        received.incrementAndGet();
    }

    /** Say why there is no figure, and end. */
    static void fail(Throwable error) {
        error.printStackTrace();
        System.exit(1);
    }

    final void run() throws Exception {
        CountDownLatch ready = new CountDownLatch(producers);
        for (int i = 0; i < producers; i++) {
            String queue = "load-" + ProcessHandle.current().pid() + "-" + i;
            Thread thread = new Thread(() -> produce(queue, ready));
            thread.setDaemon(true);
            thread.start();
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
        long got = received.get() - receivedBefore;
        ended = true;
        long[] all = Arrays.copyOf(samples, Math.min(sampled.get(), samples.length));
        Arrays.sort(all);
        System.out.printf(
                Locale.ROOT,
                "{\"confirmed_per_s\": %.1f, \"received_per_s\": %.1f, \"p50_us\": %.1f,"
                        + " \"p99_us\": %.1f}%n",
                sent / took,
                got / took,
                percentile(all, 0.5),
                percentile(all, 0.99));
        System.out.flush();
        System.exit(0);
    }

    private static double percentile(long[] sorted, double share) {
        if (sorted.length == 0) {
            return 0;
        }
        return sorted[(int) Math.min(sorted.length - 1, Math.round(share * sorted.length))] / 1e3;
    }

    private void produce(String queue, CountDownLatch ready) {
        try {
            Sender sender = connect(queue);
            ready.countDown();
            Semaphore room = new Semaphore(window);
            long interval = rate > 0 ? (long) (1e9 * producers / rate) : 0;
            long due = System.nanoTime();
            while (!ended) {
                if (interval > 0) {
                    due += interval;
                    for (long early; (early = due - System.nanoTime()) > 0; ) {
                        LockSupport.parkNanos(early);
                    }
                }
                room.acquire();
                long start = interval > 0 ? due : System.nanoTime();
                sender.send(
                        () -> {
                            confirmed.incrementAndGet();
                            if (measuring) {
                                int at = sampled.getAndIncrement();
                                if (at < samples.length) {
                                    samples[at] = System.nanoTime() - start;
                                }
                            }
                            room.release();
                        });
            }
        } catch (Throwable error) {
            if (!ended) {
                fail(error);
            }
        }
    }
}
