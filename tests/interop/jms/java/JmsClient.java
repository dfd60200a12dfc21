import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Collections;
import java.util.Enumeration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import javax.jms.BytesMessage;
import javax.jms.Connection;
import javax.jms.DeliveryMode;
import javax.jms.JMSException;
import javax.jms.MapMessage;
import javax.jms.Message;
import javax.jms.MessageConsumer;
import javax.jms.MessageProducer;
import javax.jms.ObjectMessage;
import javax.jms.Queue;
import javax.jms.QueueBrowser;
import javax.jms.Session;
import javax.jms.StreamMessage;
import javax.jms.TemporaryQueue;
import javax.jms.TextMessage;
import javax.jms.Topic;
import javax.jms.TopicSubscriber;
import javax.jms.XAConnection;
import javax.jms.XASession;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.apache.activemq.artemis.api.jms.management.JMSManagementHelper;
import org.apache.activemq.artemis.jms.client.ActiveMQConnectionFactory;
import org.apache.activemq.artemis.jms.client.ActiveMQXAConnectionFactory;

/** Scenarios of Artemis's JMS client against a broker: a line `name argument …` in, a line `ok …` or `error …` out. */
public final class JmsClient {

    interface Scenario {
        Object run(String[] words) throws Exception;
    }

    private static final int WAIT_MS = 5000;
    private static final int NOTHING_MS = 150;
    private static final int LONG_MS = 120000;
    private final Map<String, Scenario> scenarios = new HashMap<>();
    private final String url;

    private JmsClient(String url) {
        this.url = url;
        scenarios.put("text", this::text);
        scenarios.put("types", this::types);
        scenarios.put("headers", this::headers);
        scenarios.put("send", this::send);
        scenarios.put("receive", this::receive);
        scenarios.put("transactions", this::transactions);
        scenarios.put("selectors", this::selectors);
        scenarios.put("topic", this::topic);
        scenarios.put("durable", this::durable);
        scenarios.put("shared", this::shared);
        scenarios.put("temporary", this::temporary);
        scenarios.put("browse", this::browse);
        scenarios.put("priorities", this::priorities);
        scenarios.put("recover", this::recover);
        scenarios.put("scheduled", this::scheduled);
        scenarios.put("expiry", this::expiry);
        scenarios.put("groups", this::groups);
        scenarios.put("duplicates", this::duplicates);
        scenarios.put("xa", this::xa);
        scenarios.put("xaPrepare", this::xaPrepare);
        scenarios.put("xaRecover", this::xaRecover);
        scenarios.put("noQueue", this::noQueue);
        scenarios.put("manage", this::manage);
        scenarios.put("notifications", this::notifications);
        scenarios.put("large", this::large);
        scenarios.put("sendLarge", this::sendLarge);
        scenarios.put("receiveLarge", this::receiveLarge);
        scenarios.put("produce", this::produce);
        scenarios.put("consume", this::consume);
    }

    private Connection connect(String parameters) throws JMSException {
        // Closing a factory closes its connections: it stays open as long as this process lives.
        Connection connection = new ActiveMQConnectionFactory(url + (url.contains("?") ? parameters.replace('?', '&') : parameters)).createConnection();
        connection.start();
        return connection;
    }

    private static void check(boolean holds, String what) {
        if (!holds) {
            throw new IllegalStateException(what);
        }
    }

    private static String body(Message message) throws JMSException {
        return message == null ? null : ((TextMessage) message).getText();
    }

    private static List<String> drain(MessageConsumer consumer) throws JMSException {
        List<String> found = new ArrayList<>();
        for (Message message = consumer.receive(NOTHING_MS); message != null; message = consumer.receive(NOTHING_MS)) {
            found.add(body(message));
        }
        return found;
    }

    private Object text(String[] words) throws Exception {
        try (Connection connection = connect("")) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Queue queue = session.createQueue(words[1]);
            session.createProducer(queue).send(session.createTextMessage("grüße €"));
            Message message = session.createConsumer(queue).receive(WAIT_MS);
            check(!message.getJMSRedelivered(), "not delivered before");
            return body(message);
        }
    }

    private Object types(String[] words) throws Exception {
        try (Connection connection = connect("")) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Queue queue = session.createQueue(words[1]);
            MessageProducer producer = session.createProducer(queue);
            MessageConsumer consumer = session.createConsumer(queue);
            BytesMessage bytes = session.createBytesMessage();
            bytes.writeUTF("a");
            bytes.writeDouble(1.5);
            producer.send(bytes);
            MapMessage map = session.createMapMessage();
            map.setString("s", "v");
            map.setLong("l", 1L << 40);
            producer.send(map);
            ObjectMessage object = session.createObjectMessage("serialised");
            producer.send(object);
            StreamMessage stream = session.createStreamMessage();
            stream.writeInt(7);
            stream.writeString("x");
            producer.send(stream);
            producer.send(session.createMessage());
            BytesMessage gotBytes = (BytesMessage) consumer.receive(WAIT_MS);
            check(gotBytes.readUTF().equals("a") && gotBytes.readDouble() == 1.5, "bytes");
            MapMessage gotMap = (MapMessage) consumer.receive(WAIT_MS);
            check(gotMap.getString("s").equals("v") && gotMap.getLong("l") == 1L << 40, "map");
            check(((ObjectMessage) consumer.receive(WAIT_MS)).getObject().equals("serialised"), "object");
            StreamMessage gotStream = (StreamMessage) consumer.receive(WAIT_MS);
            check(gotStream.readInt() == 7 && gotStream.readString().equals("x"), "stream");
            check(consumer.receive(WAIT_MS) != null, "plain");
            return 5;
        }
    }

    private Object headers(String[] words) throws Exception {
        try (Connection connection = connect("")) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Queue queue = session.createQueue(words[1]);
            MessageProducer producer = session.createProducer(queue);
            TextMessage sent = session.createTextMessage("h");
            sent.setJMSCorrelationID("c");
            sent.setJMSType("t");
            sent.setJMSReplyTo(session.createQueue("reply"));
            sent.setBooleanProperty("z", true);
            sent.setByteProperty("b", (byte) 1);
            sent.setShortProperty("s", (short) 2);
            sent.setIntProperty("i", 3);
            sent.setLongProperty("l", 4);
            sent.setFloatProperty("f", 5.5f);
            sent.setDoubleProperty("d", 6.5);
            sent.setStringProperty("t", "text");
            producer.send(sent, DeliveryMode.NON_PERSISTENT, 7, 60000);
            Message got = session.createConsumer(queue).receive(WAIT_MS);
            check(got.getJMSMessageID().equals(sent.getJMSMessageID()), "id");
            check(got.getJMSDestination().equals(queue), "destination");
            check(got.getJMSDeliveryMode() == DeliveryMode.NON_PERSISTENT && got.getJMSPriority() == 7, "mode, priority");
            check(got.getJMSExpiration() == sent.getJMSExpiration() && got.getJMSTimestamp() == sent.getJMSTimestamp(), "times");
            check(got.getJMSCorrelationID().equals("c") && got.getJMSType().equals("t"), "correlation, type");
            check(got.getJMSReplyTo().equals(session.createQueue("reply")), "reply to");
            check(got.getBooleanProperty("z") && got.getByteProperty("b") == 1 && got.getShortProperty("s") == 2, "z b s");
            check(got.getIntProperty("i") == 3 && got.getLongProperty("l") == 4 && got.getFloatProperty("f") == 5.5f, "i l f");
            check(got.getDoubleProperty("d") == 6.5 && got.getStringProperty("t").equals("text"), "d t");
            check(got.getIntProperty("JMSXDeliveryCount") == 1, "delivery count");
            return "headers";
        }
    }

    /** send QUEUE COUNT PREFIX: durable, each confirmed; prints how many were. */
    private Object send(String[] words) throws Exception {
        int sent = 0;
        try (Connection connection = connect("")) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            MessageProducer producer = session.createProducer(session.createQueue(words[1]));
            for (; sent < Integer.parseInt(words[2]); sent++) {
                producer.send(session.createTextMessage(words[3] + sent));
            }
        }
        return sent;
    }

    /** receive QUEUE: all there is, with `!` behind what was delivered before. */
    private Object receive(String[] words) throws Exception {
        try (Connection connection = connect("?blockOnAcknowledge=true")) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            MessageConsumer consumer = session.createConsumer(session.createQueue(words[1]));
            List<String> found = new ArrayList<>();
            for (Message message = consumer.receive(1000); message != null; message = consumer.receive(NOTHING_MS)) {
                found.add(body(message) + (message.getJMSRedelivered() ? "!" : ""));
            }
            return String.join(" ", found);
        }
    }

    private Object transactions(String[] words) throws Exception {
        try (Connection connection = connect("")) {
            Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
            Queue queue = session.createQueue(words[1]);
            MessageProducer producer = session.createProducer(queue);
            MessageConsumer consumer = session.createConsumer(queue);
            producer.send(session.createTextMessage("lost"));
            session.rollback();
            producer.send(session.createTextMessage("1"));
            producer.send(session.createTextMessage("2"));
            check(consumer.receive(NOTHING_MS) == null, "nothing before the commit");
            session.commit();
            check("1".equals(body(consumer.receive(WAIT_MS))) && "2".equals(body(consumer.receive(WAIT_MS))), "both");
            session.rollback();
            Message again = consumer.receive(WAIT_MS);
            check("1".equals(body(again)) && again.getJMSRedelivered() && again.getIntProperty("JMSXDeliveryCount") == 2, "again");
            check("2".equals(body(consumer.receive(WAIT_MS))), "again in order");
            session.commit();
            return consumer.receive(NOTHING_MS) == null;
        }
    }

    private Object selectors(String[] words) throws Exception {
        try (Connection connection = connect("")) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Queue queue = session.createQueue(words[1]);
            MessageProducer producer = session.createProducer(queue);
            for (int i = 0; i < 6; i++) {
                TextMessage message = session.createTextMessage("" + i);
                message.setIntProperty("n", i);
                message.setStringProperty("kind", i % 2 == 0 ? "even" : "odd");
                producer.send(message);
            }
            MessageConsumer odd = session.createConsumer(queue, "kind = 'odd' AND n > 1");
            List<String> found = drain(odd);
            odd.close();
            MessageConsumer rest = session.createConsumer(queue, "JMSPriority = 4");
            return found + " " + drain(rest);
        }
    }

    private Object topic(String[] words) throws Exception {
        try (Connection connection = connect("")) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Topic topic = session.createTopic(words[1] + ".eu");
            MessageConsumer all = session.createConsumer(session.createTopic(words[1] + ".#"));
            MessageConsumer one = session.createConsumer(topic);
            MessageConsumer other = session.createConsumer(session.createTopic(words[1] + ".us"));
            session.createProducer(topic).send(session.createTextMessage("t"));
            return drain(all) + " " + drain(one) + " " + drain(other);
        }
    }

    private Object durable(String[] words) throws Exception {
        try (ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(url)) {
            for (int round = 0; round < 2; round++) {
                try (Connection connection = factory.createConnection()) {
                    connection.setClientID("me");
                    connection.start();
                    Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                    Topic topic = session.createTopic(words[1]);
                    if (round == 0) {
                        TopicSubscriber subscriber = session.createDurableSubscriber(topic, "sub");
                        subscriber.close();
                        session.createProducer(topic).send(session.createTextMessage("kept"));
                    } else {
                        TopicSubscriber subscriber = session.createDurableSubscriber(topic, "sub");
                        String found = body(subscriber.receive(WAIT_MS));
                        subscriber.close();
                        session.unsubscribe("sub");
                        return found;
                    }
                }
            }
        }
        return null;
    }

    private Object shared(String[] words) throws Exception {
        try (Connection connection = connect("")) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Topic topic = session.createTopic(words[1]);
            MessageConsumer first = session.createSharedConsumer(topic, "together");
            MessageConsumer second = session.createSharedConsumer(topic, "together");
            MessageProducer producer = session.createProducer(topic);
            for (int i = 0; i < 4; i++) {
                producer.send(session.createTextMessage("" + i));
            }
            List<String> found = drain(first);
            check(found.size() == 2, "half of them: " + found);
            found.addAll(drain(second));
            Collections.sort(found);
            return found;
        }
    }

    private Object temporary(String[] words) throws Exception {
        try (Connection connection = connect("")) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Queue queue = session.createQueue(words[1]);
            TemporaryQueue replies = session.createTemporaryQueue();
            TextMessage request = session.createTextMessage("ping");
            request.setJMSReplyTo(replies);
            session.createProducer(queue).send(request);
            Message got = session.createConsumer(queue).receive(WAIT_MS);
            session.createProducer(got.getJMSReplyTo()).send(session.createTextMessage("pong"));
            MessageConsumer consumer = session.createConsumer(replies);
            String answer = body(consumer.receive(WAIT_MS));
            consumer.close();
            replies.delete();
            return answer;
        }
    }

    private Object browse(String[] words) throws Exception {
        try (Connection connection = connect("")) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Queue queue = session.createQueue(words[1]);
            MessageProducer producer = session.createProducer(queue);
            for (int i = 0; i < 3; i++) {
                producer.send(session.createTextMessage("" + i));
            }
            List<String> seen = new ArrayList<>();
            QueueBrowser browser = session.createBrowser(queue);
            for (Enumeration<?> one = browser.getEnumeration(); one.hasMoreElements();) {
                seen.add(body((Message) one.nextElement()));
            }
            browser.close();
            return seen + " " + drain(session.createConsumer(queue));
        }
    }

    private Object priorities(String[] words) throws Exception {
        try (Connection connection = connect("")) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Queue queue = session.createQueue(words[1]);
            MessageProducer producer = session.createProducer(queue);
            for (int priority : new int[] {1, 9, 4}) {
                producer.send(session.createTextMessage("" + priority), DeliveryMode.PERSISTENT, priority, 0);
            }
            return drain(session.createConsumer(queue));
        }
    }

    private Object recover(String[] words) throws Exception {
        try (Connection connection = connect("")) {
            Session session = connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
            Queue queue = session.createQueue(words[1]);
            session.createProducer(queue).send(session.createTextMessage("r"));
            MessageConsumer consumer = session.createConsumer(queue);
            consumer.receive(WAIT_MS);
            session.recover();
            Message again = consumer.receive(WAIT_MS);
            check(again.getJMSRedelivered(), "delivered before");
            again.acknowledge();
            return consumer.receive(NOTHING_MS) == null;
        }
    }

    private Object scheduled(String[] words) throws Exception {
        try (Connection connection = connect("")) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Queue queue = session.createQueue(words[1]);
            MessageProducer producer = session.createProducer(queue);
            producer.setDeliveryDelay(700);
            long before = System.currentTimeMillis();
            producer.send(session.createTextMessage("later"));
            String found = body(session.createConsumer(queue).receive(WAIT_MS));
            check(System.currentTimeMillis() - before >= 700, "too early");
            return found;
        }
    }

    private Object expiry(String[] words) throws Exception {
        try (Connection connection = connect("")) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Queue queue = session.createQueue(words[1]);
            MessageProducer producer = session.createProducer(queue);
            producer.send(session.createTextMessage("gone"), DeliveryMode.PERSISTENT, 4, 100);
            producer.send(session.createTextMessage("here"));
            Thread.sleep(300);
            return drain(session.createConsumer(queue));
        }
    }

    private Object groups(String[] words) throws Exception {
        try (Connection connection = connect("?consumerWindowSize=0")) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Queue queue = session.createQueue(words[1]);
            MessageConsumer first = session.createConsumer(queue);
            MessageConsumer second = session.createConsumer(queue);
            MessageProducer producer = session.createProducer(queue);
            for (int i = 0; i < 6; i++) {
                TextMessage message = session.createTextMessage(i % 2 == 0 ? "a" : "b");
                message.setStringProperty("JMSXGroupID", i % 2 == 0 ? "a" : "b");
                producer.send(message);
            }
            List<String> one = new ArrayList<>();
            List<String> two = new ArrayList<>();
            for (int i = 0; i < 6; i++) {
                Message message = first.receive(NOTHING_MS);
                if (message != null) {
                    one.add(body(message));
                }
                message = second.receive(NOTHING_MS);
                if (message != null) {
                    two.add(body(message));
                }
            }
            check(one.size() == 3 && two.size() == 3, "three each: " + one + two);
            check(Collections.frequency(one, one.get(0)) == 3 && Collections.frequency(two, two.get(0)) == 3, "mixed: " + one + two);
            return 6;
        }
    }

    private Object duplicates(String[] words) throws Exception {
        try (Connection connection = connect("")) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Queue queue = session.createQueue(words[1]);
            MessageProducer producer = session.createProducer(queue);
            for (int i = 0; i < 2; i++) {
                TextMessage message = session.createTextMessage("once");
                message.setStringProperty("_AMQ_DUPL_ID", "one");
                producer.send(message);
            }
            Session transacted = connection.createSession(true, Session.SESSION_TRANSACTED);
            MessageProducer other = transacted.createProducer(queue);
            TextMessage twice = transacted.createTextMessage("twice");
            twice.setStringProperty("_AMQ_DUPL_ID", "one");
            other.send(transacted.createTextMessage("innocent"));
            other.send(twice);
            String refused = "nothing";
            try {
                transacted.commit();
            } catch (JMSException error) {
                refused = error.getMessage().contains("Duplicate") ? "duplicate" : error.toString();
            }
            return refused + " " + drain(session.createConsumer(queue));
        }
    }

    record Name(byte[] branch, byte[] global) implements Xid {
        static Name of(String text) {
            return new Name("branch".getBytes(), text.getBytes());
        }

        @Override
        public int getFormatId() {
            return 7;
        }

        @Override
        public byte[] getGlobalTransactionId() {
            return global;
        }

        @Override
        public byte[] getBranchQualifier() {
            return branch;
        }
    }

    private XAConnection connectXa() throws JMSException {
        XAConnection connection = new ActiveMQXAConnectionFactory(url).createXAConnection();
        connection.start();
        return connection;
    }

    private Object xa(String[] words) throws Exception {
        try (XAConnection connection = connectXa()) {
            XASession session = connection.createXASession();
            XAResource resource = session.getXAResource();
            Queue queue = session.createQueue(words[1]);
            MessageProducer producer = session.createProducer(queue);
            MessageConsumer consumer = session.createConsumer(queue);
            Xid one = Name.of("one" + words[1]);
            resource.start(one, XAResource.TMNOFLAGS);
            producer.send(session.createTextMessage("x"));
            resource.end(one, XAResource.TMSUCCESS);
            resource.prepare(one);
            resource.commit(one, false);
            Xid two = Name.of("two" + words[1]);
            resource.start(two, XAResource.TMNOFLAGS);
            check("x".equals(body(consumer.receive(WAIT_MS))), "delivered");
            resource.end(two, XAResource.TMSUCCESS);
            resource.rollback(two);
            Xid three = Name.of("three" + words[1]);
            resource.start(three, XAResource.TMNOFLAGS);
            check("x".equals(body(consumer.receive(WAIT_MS))), "delivered again");
            resource.end(three, XAResource.TMSUCCESS);
            resource.commit(three, true);
            try {
                resource.commit(three, true);
                return "committed twice";
            } catch (XAException error) {
                return error.errorCode;
            }
        }
    }

    /** xaPrepare QUEUE: takes one message and sends one, prepared and left so. */
    private Object xaPrepare(String[] words) throws Exception {
        try (XAConnection connection = connectXa()) {
            XASession session = connection.createXASession();
            XAResource resource = session.getXAResource();
            Queue queue = session.createQueue(words[1]);
            Xid name = Name.of("kept");
            resource.start(name, XAResource.TMNOFLAGS);
            MessageConsumer consumer = session.createConsumer(queue);
            String taken = body(consumer.receive(WAIT_MS));
            session.createProducer(queue).send(session.createTextMessage("new"));
            resource.end(name, XAResource.TMSUCCESS);
            resource.prepare(name);
            return taken;
        }
    }

    /** What the management helper gets for an operation; the text of a failure. */
    private static Object manage(Session session, String resource, String operation, Object... arguments) throws Exception {
        TemporaryQueue answers = session.createTemporaryQueue();
        Message request = session.createMessage();
        if (operation.startsWith("?")) {
            JMSManagementHelper.putAttribute(request, resource, operation.substring(1));
        } else {
            JMSManagementHelper.putOperationInvocation(request, resource, operation, arguments);
        }
        request.setJMSReplyTo(answers);
        try (MessageConsumer consumer = session.createConsumer(answers)) {
            session.createProducer(session.createQueue("activemq.management")).send(request);
            Message answer = consumer.receive(WAIT_MS);
            check(request.getJMSMessageID().endsWith(answer.getJMSCorrelationID()), "whose it is");
            Object result = JMSManagementHelper.getResult(answer);
            return JMSManagementHelper.hasOperationSucceeded(answer) ? result : "failed: " + result;
        } finally {
            answers.delete();
        }
    }

    /** manage QUEUE: made, filled, looked into, emptied and deleted by the management helper. */
    private Object manage(String[] words) throws Exception {
        String name = words[1];
        String resource = "queue." + name;
        List<Object> found = new ArrayList<>();
        try (Connection connection = connect("")) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            found.add(manage(session, "broker", "createQueue", name, name, "ANYCAST"));
            MessageProducer producer = session.createProducer(session.createQueue(name));
            for (int number = 0; number < 3; number++) {
                Message message = session.createTextMessage("m" + number);
                message.setIntProperty("n", number);
                producer.send(message);
            }
            found.add(manage(session, resource, "?messageCount"));
            found.add(manage(session, resource, "?durable"));
            Object[] maps = (Object[]) manage(session, resource, "listMessages", "n > 0");
            for (Object map : maps) {
                found.add(((Map<?, ?>) map).get("n"));
            }
            found.add(manage(session, resource, "removeMessages", "n = 1"));
            found.add(manage(session, resource, "moveMessages", "", name).toString().split(":")[0]);
            found.add(manage(session, "broker", "destroyQueue", name));
            found.add(manage(session, resource, "?messageCount").toString().split(":")[0]);
        }
        return found;
    }

    /** notifications QUEUE: what is told while a consumer of a new queue comes and goes. */
    private Object notifications(String[] words) throws Exception {
        List<String> found = new ArrayList<>();
        try (Connection connection = connect("")) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            Topic topic = session.createTopic("activemq.notifications");
            String selector = "_AMQ_Address = '" + words[1] + "' AND _AMQ_RoutingName = '" + words[1] + "'";
            try (MessageConsumer listener = session.createConsumer(topic, selector)) {
                Session other = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
                manage(other, "broker", "createQueue", words[1], words[1], "ANYCAST");
                other.createConsumer(other.createQueue(words[1])).close();
                manage(other, "broker", "destroyQueue", words[1]);
                for (int number = 0; number < 4; number++) {
                    Message message = listener.receive(WAIT_MS);
                    check(message.getLongProperty("_AMQ_NotifTimestamp") > 0, "a time");
                    check(message.getIntProperty("_AMQ_Distance") == 0, "here");
                    found.add(message.getStringProperty("_AMQ_NotifType"));
                }
            }
        }
        return found;
    }

    /** xaRecover commit|rollback: decides about all there is; how many. */
    private Object xaRecover(String[] words) throws Exception {
        try (XAConnection connection = connectXa()) {
            XAResource resource = connection.createXASession().getXAResource();
            Xid[] found = resource.recover(XAResource.TMSTARTRSCAN | XAResource.TMENDRSCAN);
            for (Xid name : found) {
                if (words[1].equals("commit")) {
                    resource.commit(name, false);
                } else {
                    resource.rollback(name);
                }
            }
            return found.length;
        }
    }

    private static byte pattern(int at) {
        return (byte) (at * 31 + at / 65536);
    }

    /** large QUEUE BYTES: there and back, twice: the first time rolled back in the middle. */
    private Object large(String[] words) throws Exception {
        sendLarge(words);
        try (Connection connection = connect("")) {
            Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
            MessageConsumer consumer = session.createConsumer(session.createQueue(words[1]));
            BytesMessage first = (BytesMessage) consumer.receive(WAIT_MS);
            first.readByte();
            session.rollback();
            return checked((BytesMessage) consumer.receive(WAIT_MS), session);
        }
    }

    private static Object checked(BytesMessage message, Session session) throws JMSException {
        byte[] all = new byte[(int) message.getBodyLength()];
        message.readBytes(all);
        for (int at = 0; at < all.length; at++) {
            check(all[at] == pattern(at), "byte " + at);
        }
        session.commit();
        return all.length;
    }

    private Object sendLarge(String[] words) throws Exception {
        try (Connection connection = connect("")) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            byte[] all = new byte[Integer.parseInt(words[2])];
            for (int at = 0; at < all.length; at++) {
                all[at] = pattern(at);
            }
            BytesMessage message = session.createBytesMessage();
            message.writeBytes(all);
            session.createProducer(session.createQueue(words[1])).send(message);
            return all.length;
        }
    }

    private Object receiveLarge(String[] words) throws Exception {
        try (Connection connection = connect("")) {
            Session session = connection.createSession(true, Session.SESSION_TRANSACTED);
            MessageConsumer consumer = session.createConsumer(session.createQueue(words[1]));
            return checked((BytesMessage) consumer.receive(WAIT_MS), session);
        }
    }

    /** produce QUEUE COUNT PARAMETERS: durable, confirmed, with duplicate ids; again where nobody knows; prints how often. */
    private Object produce(String[] words) throws Exception {
        int again = 0;
        try (Connection connection = connect(words[3])) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            MessageProducer producer = session.createProducer(session.createQueue(words[1]));
            for (int sent = 0; sent < Integer.parseInt(words[2]);) {
                TextMessage message = session.createTextMessage("" + sent);
                if (words.length > 4) {
                    message.setStringProperty("_AMQ_DUPL_ID", words[4] + sent);
                }
                try {
                    producer.send(message);
                    sent++;
                } catch (JMSException error) {
                    if (words.length <= 4) {
                        throw error;
                    }
                    again++;
                    // Another send would be refused for the same reason, or wait for the reconnect.
                    check(again < 10000, "too often: " + error);
                }
            }
        }
        return again;
    }

    /** consume QUEUE LAST PARAMETERS: until the last body has come, acknowledged one by one; all bodies, `!` behind marked ones. */
    private Object consume(String[] words) throws Exception {
        List<String> found = new ArrayList<>();
        try (Connection connection = connect(words[3])) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            MessageConsumer consumer = session.createConsumer(session.createQueue(words[1]));
            String last = "";
            while (!last.equals(words[2])) {
                Message message = consumer.receive(LONG_MS);
                check(message != null, "nothing came behind " + last);
                last = body(message);
                found.add(last + (message.getJMSRedelivered() ? "!" : ""));
            }
        }
        return String.join(" ", found);
    }

    private Object noQueue(String[] words) throws Exception {
        try (Connection connection = connect("")) {
            Session session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
            try {
                session.createConsumer(session.createQueue(words[1]), "this is = no selector (");
                return "accepted";
            } catch (JMSException error) {
                return error.getClass().getSimpleName();
            }
        }
    }

    private void serve() throws Exception {
        BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
        for (String line = in.readLine(); line != null; line = in.readLine()) {
            String[] words = line.split(" ");
            String answer;
            try {
                answer = "ok " + scenarios.get(words[0]).run(words);
            } catch (Exception error) {
                answer = "error " + error + " at " + error.getStackTrace()[0];
            }
            System.out.println(answer.replace('\n', ' '));
        }
    }

    /** Runs the scenarios that are asked for, against the URL given. */
    public static void main(String[] arguments) throws Exception {
        new JmsClient(arguments[0]).serve();
        System.exit(0);
    }
}
