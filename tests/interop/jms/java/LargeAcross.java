import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.Arrays;
import java.util.Collections;
import java.util.zip.CRC32;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.ConnectionFactory;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.ObjectMessage;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TextMessage;

/**
 * A large message of each type of JMS, over any client: -Dfactory names its class, made of a URL.
 *
 * <p>Lines "send QUEUE" and "receive QUEUE" are answered "ok …" or "failed …".
 */
public final class LargeAcross {
    private static final int SIZE = 300_000;
    private static final long TIMEOUT_MS = 60_000;
    private static final int MESSAGES = 5;

    public static void main(String[] arguments) throws Exception {
        ConnectionFactory factory =
                (ConnectionFactory)
                        Class.forName(System.getProperty("factory"))
                                .getConstructor(String.class)
                                .newInstance(arguments[0]);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        try (Connection connection = factory.createConnection()) {
            connection.start();
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                String[] words = line.split(" ");
                try (Session session = connection.createSession(true, Session.SESSION_TRANSACTED)) {
                    System.out.println("ok " + run(session, words));
                } catch (Exception error) {
                    System.out.println("failed " + (error + " " + error.getCause()).replace('\n', ' '));
                }
            }
        }
    }

    private static String run(Session session, String[] words) throws Exception {
        if (words[0].equals("send")) {
            send(session, session.createProducer(session.createQueue(words[1])));
            session.commit();
            return "sent";
        }
        try (MessageConsumer consumer = session.createConsumer(session.createQueue(words[1]))) {
            StringBuilder found = new StringBuilder();
            for (int number = 0; number < MESSAGES; number++) {
                Message message = consumer.receive(TIMEOUT_MS);
                if (message == null) {
                    throw new IllegalStateException("no message after " + found);
                }
                try {
                    found.append(told(message)).append(' ');
                } catch (Exception error) {
                    throw new IllegalStateException("message " + number + " after " + found, error);
                }
            }
            session.commit();
            return found.toString().trim();
        }
    }

    private static byte[] data() {
        byte[] data = new byte[SIZE];
        for (int at = 0; at < SIZE; at++) {
            data[at] = (byte) (at * 31 + at / 256);
        }
        return data;
    }

    private static void send(Session session, MessageProducer producer) throws Exception {
        TextMessage text = session.createTextMessage(
                String.join("", Collections.nCopies(SIZE / 6, "Größe𝄞")));
        BytesMessage bytes = session.createBytesMessage();
        bytes.writeBytes(data());
        MapMessage map = session.createMapMessage();
        map.setBytes("data", data());
        map.setInt("number", 7);
        StreamMessage stream = session.createStreamMessage();
        stream.writeString("first");
        stream.writeBytes(data());
        ObjectMessage object = session.createObjectMessage(data());
        for (Message message : Arrays.asList(text, bytes, map, stream, object)) {
            message.setStringProperty("colour", "red");
            producer.send(message);
        }
    }

    private static String told(Message message) throws Exception {
        String colour = message.getStringProperty("colour");
        if (message instanceof TextMessage) {
            return "text:" + colour + ":" + sum(((TextMessage) message).getText().getBytes("UTF-8"));
        }
        if (message instanceof BytesMessage) {
            byte[] data = new byte[(int) ((BytesMessage) message).getBodyLength()];
            ((BytesMessage) message).readBytes(data);
            return "bytes:" + colour + ":" + sum(data);
        }
        if (message instanceof MapMessage) {
            MapMessage map = (MapMessage) message;
            return "map:" + colour + ":" + map.getInt("number") + ":" + sum(map.getBytes("data"));
        }
        if (message instanceof StreamMessage) {
            StreamMessage stream = (StreamMessage) message;
            String first = stream.readString();
            return "stream:" + colour + ":" + first + ":" + sum((byte[]) stream.readObject());
        }
        return "object:" + colour + ":" + sum((byte[]) ((ObjectMessage) message).getObject());
    }

    private static String sum(byte[] data) {
        CRC32 sum = new CRC32();
        sum.update(data);
        return data.length + "/" + sum.getValue();
    }
}
