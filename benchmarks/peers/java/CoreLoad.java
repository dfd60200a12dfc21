import org.apache.activemq.artemis.api.core.ActiveMQException;
import org.apache.activemq.artemis.api.core.QueueConfiguration;
import org.apache.activemq.artemis.api.core.RoutingType;
import org.apache.activemq.artemis.api.core.client.ActiveMQClient;
import org.apache.activemq.artemis.api.core.client.ClientMessage;
import org.apache.activemq.artemis.api.core.client.ClientProducer;
import org.apache.activemq.artemis.api.core.client.ClientSession;
import org.apache.activemq.artemis.api.core.client.ServerLocator;

/** Load on a broker by Artemis's Core client. A window of 1 is a blocking send. */
public final class CoreLoad extends Load {
    private CoreLoad(String[] args) {
        super(args);
    }

    public static void main(String[] args) throws Exception {
        new CoreLoad(args).run();
    }

    @Override
    Sender connect(String queue) throws Exception {
        ServerLocator locator = ActiveMQClient.createServerLocator(uri);
        boolean blocking = window == 1;
        locator.setBlockOnDurableSend(blocking).setBlockOnNonDurableSend(blocking);
        if (!blocking) {
            locator.setConfirmationWindowSize(10 << 20);
        }
        locator.setProducerWindowSize(-1);
        ClientSession session = session(locator);
        session.createQueue(QueueConfiguration.of(queue).setRoutingType(RoutingType.ANYCAST));
        ClientSession taking = session(locator);
        taking.createConsumer(queue).setMessageHandler(this::take);
        taking.start();
        ClientProducer producer = session.createProducer(queue);
        return confirmed -> {
            ClientMessage message = session.createMessage(durable);
            message.getBodyBuffer().writeBytes(body);
            if (blocking) {
                producer.send(message);
                confirmed.run();
            } else {
                producer.send(message, done -> confirmed.run());
            }
        };
    }

    private ClientSession session(ServerLocator locator) throws Exception {
        return locator.createSessionFactory()
                .createSession(user, password, false, true, true, false, 1 << 20);
    }

    private void take(ClientMessage message) {
        try {
            message.acknowledge();
        } catch (ActiveMQException error) {
            throw new IllegalStateException(error);
        }
        taken();
    }
}
