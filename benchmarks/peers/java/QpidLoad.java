import javax.jms.CompletionListener;
import javax.jms.ConnectionFactory;
import javax.jms.JMSException;
import javax.jms.Message;
import javax.jms.MessageProducer;
import org.apache.qpid.jms.JmsConnectionFactory;

/** The load of JmsLoad.java by AMQP 1.0: Qpid JMS. */
public final class QpidLoad extends JmsLoad {
    private QpidLoad(String[] args) {
        super(args);
    }

    public static void main(String[] args) throws Exception {
        new QpidLoad(args).run();
    }

    @Override
    ConnectionFactory factory() {
        return new JmsConnectionFactory(user, password, uri);
    }

    @Override
    void send(MessageProducer producer, Message message, Runnable confirmed) throws JMSException {
        producer.send(message, new Confirmed(confirmed));
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
