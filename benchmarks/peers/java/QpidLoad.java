import javax.jms.BytesMessage;
import javax.jms.CompletionListener;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageProducer;
import javax.jms.Session;
import org.apache.qpid.jms.JmsConnectionFactory;

/**
 * The load of Load.java by AMQP 1.0: Qpid JMS, with the options that it has by itself.
 *
 * A durable message with a window of 1 is sent by send(), which blocks until the broker has settled
 * it. Of others a listener hears: send() waits for no message that is not durable. The system
 * property `prefix` begins the addresses where a broker wants that: RabbitMQ's are /queue/NAME.
 */
public final class QpidLoad extends Load {
    private static final String PREFIX = System.getProperty("prefix", "");

    private QpidLoad(String[] args) {
        super(args);
    }

    public static void main(String[] args) throws Exception {
        new QpidLoad(args).run();
    }

    @Override
    Sender connect(String queue) throws Exception {
        Session taking = session();
        taking.createConsumer(taking.createQueue(PREFIX + queue))
                .setMessageListener(message -> taken());
        Session session = session();
        MessageProducer producer = session.createProducer(session.createQueue(PREFIX + queue));
        producer.setDeliveryMode(
                durable ? DeliveryMode.PERSISTENT : DeliveryMode.NON_PERSISTENT);
        boolean blocking = durable && window == 1;
        return confirmed -> {
            BytesMessage message = session.createBytesMessage();
            message.writeBytes(body);
            if (blocking) {
                producer.send(message);
                confirmed.run();
            } else {
                producer.send(message, new Confirmed(confirmed));
            }
        };
    }

    /** A session with a connection of its own. */
    private Session session() throws JMSException {
        Connection connection = new JmsConnectionFactory(user, password, uri).createConnection();
        connection.setExceptionListener(Load::fail);
        connection.start();
        return connection.createSession(Session.AUTO_ACKNOWLEDGE);
    }

    private record Confirmed(Runnable confirmed) implements CompletionListener {
        @Override
        public void onCompletion(Message message) {
            confirmed.run();
        }

        @Override
        public void onException(Message message, Exception error) {
            fail(error);
        }
    }
}
