import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.Session;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQMessageProducer;
import org.apache.activemq.AsyncCallback;

/**
 * The load of Load.java by OpenWire: the client of ActiveMQ Classic, with the options that it has
 * by itself.
 *
 * A durable message with a window of 1 is sent by send(), which blocks until the broker has answered
 * it. Others are sent with a callback, as no send() waits for a message that is not durable.
 */
public final class ClassicLoad extends Load {
    private ClassicLoad(String[] args) {
        super(args);
    }

    public static void main(String[] args) throws Exception {
        new ClassicLoad(args).run();
    }

    @Override
    Sender connect(String queue) throws Exception {
        Session taking = session();
        taking.createConsumer(taking.createQueue(queue)).setMessageListener(message -> taken());
        Session session = session();
        ActiveMQMessageProducer producer =
                (ActiveMQMessageProducer) session.createProducer(session.createQueue(queue));
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
        Connection connection =
                new ActiveMQConnectionFactory(user, password, uri).createConnection();
        connection.setExceptionListener(Load::fail);
        connection.start();
        return connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
    }

    private record Confirmed(Runnable confirmed) implements AsyncCallback {
        @Override
        public void onSuccess() {
            confirmed.run();
        }

        @Override
        public void onException(JMSException error) {
            fail(error);
        }
    }
}
