import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.ConnectionFactory;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageProducer;
import javax.jms.Session;

/**
 * The load of Load.java by a JMS client, with the options that it has by itself.
 *
 * A durable message with a window of 1 is sent by send(), which blocks until the broker has answered
 * it. Others are confirmed later, as no send() waits for a message that is not durable. The system
 * property `prefix` begins the addresses where a broker wants that: RabbitMQ's are /queue/NAME.
 */
abstract class JmsLoad extends Load {
    private static final String PREFIX = System.getProperty("prefix", "");

    JmsLoad(String[] args) {
        super(args);
    }

    /** What makes connections to `uri`. */
    abstract ConnectionFactory factory() throws JMSException;

    /** Send without waiting; `confirmed` runs once the broker has answered. */
    abstract void send(MessageProducer producer, Message message, Runnable confirmed)
            throws JMSException;

    @Override
    final Sender connect(String queue) throws Exception {
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
                send(producer, message, confirmed);
            }
        };
    }

    /** A session with a connection of its own. */
    private Session session() throws JMSException {
        Connection connection = factory().createConnection();
        connection.setExceptionListener(Load::fail);
        connection.start();
        return connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    }
}
