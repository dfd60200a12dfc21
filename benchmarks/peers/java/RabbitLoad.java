import com.rabbitmq.client.AMQP;
import com.rabbitmq.client.Channel;
import com.rabbitmq.client.ConnectionFactory;
import java.util.concurrent.ConcurrentNavigableMap;
import java.util.concurrent.ConcurrentSkipListMap;

/** The load of Load.java on RabbitMQ: durable classic queues, publisher confirms. */
public final class RabbitLoad extends Load {
    // As many as a consumer acknowledges with one packet.
    private static final int PREFETCH = 1000;
    private static final int ACKNOWLEDGED_TOGETHER = 100;

    private RabbitLoad(String[] args) {
        super(args);
    }

    public static void main(String[] args) throws Exception {
        new RabbitLoad(args).run();
    }

    @Override
    Sender connect(String queue) throws Exception {
        ConnectionFactory factory = new ConnectionFactory();
        factory.setUri(uri);
        factory.setUsername(user);
        factory.setPassword(password);
        Channel taking = factory.newConnection().createChannel();
        taking.queueDeclare(queue, true, false, false, null);
        taking.basicQos(PREFETCH);
        taking.basicConsume(
                queue,
                false,
                (tag, message) -> {
                    taken();
                    long number = message.getEnvelope().getDeliveryTag();
                    if (number % ACKNOWLEDGED_TOGETHER == 0) {
                        taking.basicAck(number, true);
                    }
                },
                tag -> {});
        Channel channel = factory.newConnection().createChannel();
        channel.confirmSelect();
        ConcurrentNavigableMap<Long, Runnable> waiting = new ConcurrentSkipListMap<>();
        channel.addConfirmListener(
                (number, several) -> {
                    if (!several) {
                        waiting.remove(number).run();
                        return;
                    }
                    ConcurrentNavigableMap<Long, Runnable> all = waiting.headMap(number, true);
                    all.values().forEach(Runnable::run);
                    all.clear();
                },
                (number, several) -> {
                    throw new IllegalStateException("refused: " + number);
                });
        AMQP.BasicProperties properties =
                new AMQP.BasicProperties.Builder().deliveryMode(durable ? 2 : 1).build();
        return confirmed -> {
            waiting.put(channel.getNextPublishSeqNo(), confirmed);
            channel.basicPublish("", queue, properties, body);
        };
    }
}
