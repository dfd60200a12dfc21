import javax.jms.ConnectionFactory;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageProducer;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQMessageProducer;
import org.apache.activemq.AsyncCallback;

/** The load of JmsLoad.java by OpenWire: the client of ActiveMQ Classic. */
public final class ClassicLoad extends JmsLoad {
    private ClassicLoad(String[] args) {
        super(args);
    }

    public static void main(String[] args) throws Exception {
        new ClassicLoad(args).run();
    }

    @Override
    ConnectionFactory factory() {
        return new ActiveMQConnectionFactory(user, password, uri);
    }

    @Override
    void send(MessageProducer producer, Message message, Runnable confirmed) throws JMSException {
        ((ActiveMQMessageProducer) producer).send(message, new Confirmed(confirmed));
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
