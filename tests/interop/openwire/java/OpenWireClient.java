import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import javax.jms.*;
import javax.transaction.xa.XAException;
import javax.transaction.xa.XAResource;
import javax.transaction.xa.Xid;
import org.apache.activemq.ActiveMQConnection;
import org.apache.activemq.ActiveMQConnectionFactory;
import org.apache.activemq.ActiveMQMessageConsumer;
import org.apache.activemq.ActiveMQSession;
import org.apache.activemq.ActiveMQXAConnectionFactory;
import org.apache.activemq.RedeliveryPolicy;
import org.apache.activemq.advisory.DestinationSource;

/** Scenarios of ActiveMQ Classic's client: a line names one, a line has what it found. */
public class OpenWireClient {

   private static final long WAIT_MS = 10_000;
   private static final long NOTHING_MS = 300;
   private final String url;
   private int clients;

   private OpenWireClient(String url) {
      this.url = url;
   }

   public static void main(String[] arguments) throws Exception {
      OpenWireClient client = new OpenWireClient(arguments[0]);
      BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
      for (String line = lines.readLine(); line != null; line = lines.readLine()) {
         String answer;
         try {
            answer = "ok " + client.run(line.split(" "));
         } catch (Throwable error) {
            answer = "failed " + error;
            error.printStackTrace();
         }
         System.out.println(answer.replace('\n', ' '));
         System.out.flush();
      }
      // What a scenario has left open keeps threads.
      System.exit(0);
   }

   private String run(String[] words) throws Exception {
      String name = words.length > 1 ? words[1] : words[0];
      try (Work work = new Work(words[0])) {
         switch (words[0]) {
            case "send":
               return send(work, name, Integer.parseInt(words[2]), words[3]);
            case "receive":
               return receive(work, name).toString();
            case "consume":
               return consume(work, name, words[2]).toString();
            case "types":
               return types(work, name);
            case "headers":
               return headers(work, name);
            case "modes":
               return modes(work, name);
            case "transactions":
               return transactions(work, name);
            case "redelivery":
               return redelivery(work, name);
            case "topic":
               return topic(work, name);
            case "durable":
               return durable(work, name);
            case "browse":
               return browse(work, name);
            case "selectors":
               return selectors(work, name);
            case "composite":
               return composite(work, name);
            case "wildcards":
               return wildcards(work, name);
            case "temporary":
               return temporary(work, name);
            case "pull":
               return pull(work, name);
            case "expiry":
               return expiry(work, name);
            case "groups":
               return groups(work, name);
            case "scheduled":
               return scheduled(work, name);
            case "noLocal":
               return noLocal(work, name);
            case "large":
               return large(work, name, Integer.parseInt(words[2]));
            case "compressed":
               return compressed(work, name);
            case "window":
               return window(work, name);
            case "clientId":
               return clientId(work, name);
            case "xa":
               return xa(work, name);
            case "xaPrepare":
               return xaPrepare(name);
            case "xaRecover":
               return xaRecover(words[1].equals("commit"));
            case "advisories":
               return advisories(work, name);
            case "virtual":
               return virtual(work);
            case "priorities":
               return priorities(work, name);
            case "badSelector":
               return badSelector(work, name);
            case "many":
               return many(work, name, Integer.parseInt(words[2]));
            default:
               throw new IllegalArgumentException(words[0]);
         }
      }
   }

   /** One connection, started, and a session of it. */
   private class Work implements AutoCloseable {
      final ActiveMQConnection connection;
      final Session session;

      Work(String scenario) throws JMSException {
         this(url, scenario + clients++);
      }

      Work(String url, String clientId) throws JMSException {
         ActiveMQConnectionFactory factory = new ActiveMQConnectionFactory(url);
         factory.setTrustAllPackages(true);
         connection = (ActiveMQConnection) factory.createConnection();
         connection.setClientID(clientId);
         connection.start();
         session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      }

      @Override
      public void close() throws JMSException {
         connection.close();
      }
   }

   private static String text(Message message) throws JMSException {
      return message == null ? "null" : ((TextMessage) message).getText();
   }

   private static List<String> rest(MessageConsumer consumer) throws JMSException {
      List<String> found = new ArrayList<>();
      for (Message one = consumer.receive(found.isEmpty() ? 2000 : NOTHING_MS); one != null;
           one = consumer.receive(NOTHING_MS)) {
         found.add(text(one));
      }
      return found;
   }

   private static String send(Work work, String name, int count, String prefix) throws Exception {
      MessageProducer producer = work.session.createProducer(work.session.createQueue(name));
      for (int number = 0; number < count; number++) {
         producer.send(work.session.createTextMessage(prefix + number));
      }
      return "" + count;
   }

   private static List<String> receive(Work work, String name) throws Exception {
      MessageConsumer consumer = work.session.createConsumer(work.session.createQueue(name));
      List<String> found = rest(consumer);
      consumer.close();
      return found;
   }

   /** All up to the text that is the last one, however long a broker is away meanwhile. */
   private static List<String> consume(Work work, String name, String last) throws Exception {
      MessageConsumer consumer = work.session.createConsumer(work.session.createQueue(name));
      List<String> found = new ArrayList<>();
      while (found.isEmpty() || !last.equals(found.get(found.size() - 1))) {
         found.add(text(consumer.receive(120_000)));
      }
      consumer.close();
      return found;
   }

   private static String types(Work work, String name) throws Exception {
      Session session = work.session;
      Queue queue = session.createQueue(name);
      MessageProducer producer = session.createProducer(queue);
      producer.send(session.createMessage());
      producer.send(session.createTextMessage("gr\u00fc\u00dfe \u20ac \ud83d\ude00 \0"));
      producer.send(session.createTextMessage());
      BytesMessage bytes = session.createBytesMessage();
      bytes.writeInt(7);
      bytes.writeUTF("b");
      producer.send(bytes);
      MapMessage map = session.createMapMessage();
      map.setBoolean("z", true);
      map.setByte("b", (byte) -1);
      map.setShort("s", (short) -2);
      map.setChar("c", 'x');
      map.setInt("i", 3);
      map.setLong("l", 1L << 40);
      map.setFloat("f", 1.5f);
      map.setDouble("d", 2.5);
      map.setString("t", "text");
      map.setBytes("y", new byte[] {1, 2});
      producer.send(map);
      StreamMessage stream = session.createStreamMessage();
      stream.writeBoolean(true);
      stream.writeByte((byte) 1);
      stream.writeChar('q');
      stream.writeInt(5);
      stream.writeLong(6);
      stream.writeDouble(7.5);
      stream.writeString("s");
      stream.writeBytes(new byte[] {9});
      producer.send(stream);
      producer.send(session.createObjectMessage(new ArrayList<>(Arrays.asList("o", 1))));
      MessageConsumer consumer = session.createConsumer(queue);
      List<String> found = new ArrayList<>();
      found.add(consumer.receive(WAIT_MS).getClass().getSimpleName());
      found.add(text(consumer.receive(WAIT_MS)).replace("\0", "NUL"));
      found.add("" + text(consumer.receive(WAIT_MS)));
      bytes = (BytesMessage) consumer.receive(WAIT_MS);
      found.add(bytes.readInt() + bytes.readUTF());
      map = (MapMessage) consumer.receive(WAIT_MS);
      List<String> values = new ArrayList<>();
      for (Object key : Collections.list(map.getMapNames())) {
         Object value = map.getObject((String) key);
         values.add(key + "=" + (value instanceof byte[] ? Arrays.toString((byte[]) value) : value));
      }
      Collections.sort(values);
      found.add(values.toString());
      stream = (StreamMessage) consumer.receive(WAIT_MS);
      values.clear();
      for (int number = 0; number < 8; number++) {
         Object value = stream.readObject();
         values.add("" + (value instanceof byte[] ? Arrays.toString((byte[]) value) : value));
      }
      found.add(values.toString());
      found.add(((ObjectMessage) consumer.receive(WAIT_MS)).getObject().toString());
      return found.toString();
   }

   private static String headers(Work work, String name) throws Exception {
      Session session = work.session;
      Queue queue = session.createQueue(name);
      MessageProducer producer = session.createProducer(queue);
      producer.setDeliveryMode(DeliveryMode.NON_PERSISTENT);
      producer.setPriority(7);
      TextMessage sent = session.createTextMessage("h");
      sent.setJMSType("kind");
      sent.setJMSCorrelationID("c-1");
      sent.setJMSReplyTo(session.createTopic("answers"));
      sent.setStringProperty("text", "t");
      sent.setIntProperty("int", 1);
      sent.setLongProperty("long", 2);
      sent.setBooleanProperty("boolean", true);
      sent.setDoubleProperty("double", 0.5);
      sent.setFloatProperty("float", 0.25f);
      sent.setByteProperty("byte", (byte) 3);
      sent.setShortProperty("short", (short) 4);
      producer.send(sent);
      Message got = session.createConsumer(queue).receive(WAIT_MS);
      List<String> properties = new ArrayList<>();
      for (Object key : Collections.list(got.getPropertyNames())) {
         Object value = got.getObjectProperty((String) key);
         properties.add(key + "=" + value.getClass().getSimpleName() + ":" + value);
      }
      Collections.sort(properties);
      return Arrays.asList(got.getJMSType(), got.getJMSCorrelationID(), got.getJMSReplyTo(),
            got.getJMSDestination().equals(queue), got.getJMSDeliveryMode(), got.getJMSPriority(),
            got.getJMSMessageID().equals(sent.getJMSMessageID()), got.getJMSRedelivered(),
            got.getJMSTimestamp() == sent.getJMSTimestamp(), got.getJMSExpiration(),
            properties.toString().replaceAll("__AMQ_CID=[^,\\]]*, ", "")).toString();
   }

   private static String modes(Work work, String name) throws Exception {
      send(work, name, 4, "m");
      Session client = work.connection.createSession(false, Session.CLIENT_ACKNOWLEDGE);
      MessageConsumer consumer = client.createConsumer(client.createQueue(name));
      List<String> found = new ArrayList<>();
      text(consumer.receive(WAIT_MS));
      Message second = consumer.receive(WAIT_MS);
      second.acknowledge();
      consumer.receive(WAIT_MS);
      client.close();
      Session individual =
            work.connection.createSession(false, ActiveMQSession.INDIVIDUAL_ACKNOWLEDGE);
      consumer = individual.createConsumer(individual.createQueue(name));
      Message third = consumer.receive(WAIT_MS);
      Message fourth = consumer.receive(WAIT_MS);
      found.add(text(third) + third.getJMSRedelivered());
      fourth.acknowledge();
      individual.close();
      Session lazy = work.connection.createSession(false, Session.DUPS_OK_ACKNOWLEDGE);
      consumer = lazy.createConsumer(lazy.createQueue(name));
      found.addAll(rest(consumer));
      lazy.close();
      found.addAll(receive(work, name));
      return found.toString();
   }

   private static String transactions(Work work, String name) throws Exception {
      Session session = work.connection.createSession(true, Session.SESSION_TRANSACTED);
      Queue queue = session.createQueue(name);
      MessageProducer producer = session.createProducer(queue);
      producer.send(session.createTextMessage("lost"));
      session.rollback();
      producer.send(session.createTextMessage("kept"));
      MessageConsumer consumer = session.createConsumer(queue);
      List<String> found = new ArrayList<>();
      found.add(text(consumer.receive(NOTHING_MS)));
      session.commit();
      found.add(text(consumer.receive(WAIT_MS)));
      session.rollback();
      Message again = consumer.receive(WAIT_MS);
      found.add(text(again) + again.getJMSRedelivered() + again.getIntProperty("JMSXDeliveryCount"));
      producer.send(session.createTextMessage("answer"));
      session.commit();
      found.add(text(consumer.receive(WAIT_MS)));
      session.close();
      Session last = work.connection.createSession(true, Session.SESSION_TRANSACTED);
      again = last.createConsumer(queue).receive(WAIT_MS);
      found.add(text(again));
      last.commit();
      found.addAll(receive(work, name));
      return found.toString();
   }

   private static String redelivery(Work work, String name) throws Exception {
      RedeliveryPolicy policy = new RedeliveryPolicy();
      policy.setMaximumRedeliveries(1);
      policy.setInitialRedeliveryDelay(0);
      work.connection.setRedeliveryPolicy(policy);
      // An address without a queue keeps nothing.
      MessageConsumer dlq = work.session.createConsumer(work.session.createQueue("DLQ"));
      send(work, name, 2, "r");
      Session session = work.connection.createSession(true, Session.SESSION_TRANSACTED);
      MessageConsumer consumer = session.createConsumer(session.createQueue(name));
      List<String> found = new ArrayList<>();
      for (int times = 0; times < 2; times++) {
         found.add(text(consumer.receive(WAIT_MS)));
         session.rollback();
      }
      found.add(text(consumer.receive(WAIT_MS)));
      session.commit();
      session.close();
      Message dead = dlq.receive(WAIT_MS);
      found.add(text(dead) + (dead.getStringProperty("dlqDeliveryFailureCause") != null));
      return found.toString();
   }

   private static String topic(Work work, String name) throws Exception {
      Session session = work.session;
      Topic topic = session.createTopic(name);
      MessageConsumer first = session.createConsumer(topic);
      MessageConsumer second = session.createConsumer(topic);
      session.createProducer(topic).send(session.createTextMessage("t"));
      return rest(first) + " " + rest(second);
   }

   private String durable(Work work, String name) throws Exception {
      List<String> found = new ArrayList<>();
      try (Work other = new Work(url, "durable.client")) {
         Topic topic = other.session.createTopic(name);
         other.session.createDurableSubscriber(topic, "sub").close();
      }
      Topic topic = work.session.createTopic(name);
      work.session.createProducer(topic).send(work.session.createTextMessage("kept"));
      try (Work other = new Work(url, "durable.client")) {
         MessageConsumer consumer = other.session.createDurableSubscriber(topic, "sub");
         found.addAll(rest(consumer));
         try (Work third = new Work("third")) {
            third.session.createDurableSubscriber(topic, "sub").close();
            third.session.unsubscribe("sub");
         }
         try {
            other.session.createDurableSubscriber(topic, "sub");
         } catch (JMSException error) {
            found.add("busy");
         }
         consumer.close();
         other.session.unsubscribe("sub");
         try {
            other.session.unsubscribe("sub");
            found.add("twice");
         } catch (JMSException error) {
            found.add(error.getClass().getSimpleName());
         }
      }
      return found.toString();
   }

   private static String browse(Work work, String name) throws Exception {
      send(work, name, 3, "b");
      List<String> found = new ArrayList<>();
      for (int times = 0; times < 2; times++) {
         QueueBrowser browser = work.session.createBrowser(work.session.createQueue(name));
         for (Object one : Collections.list(browser.getEnumeration())) {
            found.add(text((Message) one));
         }
         browser.close();
      }
      QueueBrowser empty = work.session.createBrowser(work.session.createQueue(name + ".empty"));
      found.add("" + empty.getEnumeration().hasMoreElements());
      found.addAll(receive(work, name));
      return found.toString();
   }

   private static String selectors(Work work, String name) throws Exception {
      Session session = work.session;
      Queue queue = session.createQueue(name);
      MessageProducer producer = session.createProducer(queue);
      String id = null;
      for (int number = 0; number < 6; number++) {
         TextMessage message = session.createTextMessage("" + number);
         message.setIntProperty("n", number);
         producer.send(message, DeliveryMode.PERSISTENT, number == 4 ? 9 : 4, 0);
         id = number == 5 ? message.getJMSMessageID() : id;
      }
      List<String> found = new ArrayList<>();
      String[] selectors = {"n = 1 OR n = 3", "JMSPriority = 9", "JMSMessageID = '" + id + "'", "TRUE"};
      for (String selector : selectors) {
         MessageConsumer consumer = session.createConsumer(queue, selector);
         found.add(rest(consumer).toString());
         consumer.close();
      }
      return found.toString();
   }

   private static String badSelector(Work work, String name) throws Exception {
      try {
         work.session.createConsumer(work.session.createQueue(name), "n = = 1");
      } catch (InvalidSelectorException error) {
         return error.getClass().getSimpleName();
      }
      return "none";
   }

   private static String composite(Work work, String name) throws Exception {
      Session session = work.session;
      MessageConsumer topic = session.createConsumer(session.createTopic(name + ".t"));
      Queue both = session.createQueue(name + ".a," + name + ".b,topic://" + name + ".t");
      session.createProducer(both).send(session.createTextMessage("c"));
      List<String> found = new ArrayList<>();
      found.addAll(rest(topic));
      MessageConsumer consumer = session.createConsumer(session.createQueue(name + ".a," + name + ".b"));
      found.addAll(rest(consumer));
      consumer.close();
      found.addAll(receive(work, name + ".a"));
      return found.toString();
   }

   private static String wildcards(Work work, String name) throws Exception {
      Session session = work.session;
      MessageConsumer one = session.createConsumer(session.createTopic(name + ".*.x"));
      MessageConsumer all = session.createConsumer(session.createTopic(name + ".>"));
      session.createProducer(session.createTopic(name + ".a.x")).send(session.createTextMessage("1"));
      session.createProducer(session.createTopic(name + ".a.b.x")).send(session.createTextMessage("2"));
      return rest(one) + " " + rest(all);
   }

   private static String temporary(Work work, String name) throws Exception {
      Session session = work.session;
      TemporaryQueue answers = session.createTemporaryQueue();
      Queue queue = session.createQueue(name);
      TextMessage request = session.createTextMessage("ping");
      request.setJMSReplyTo(answers);
      session.createProducer(queue).send(request);
      MessageConsumer replies = session.createConsumer(answers);
      Message got = session.createConsumer(queue).receive(WAIT_MS);
      session.createProducer(got.getJMSReplyTo()).send(session.createTextMessage("pong"));
      String found = text(replies.receive(WAIT_MS));
      replies.close();
      answers.delete();
      TemporaryTopic topic = session.createTemporaryTopic();
      MessageConsumer heard = session.createConsumer(topic);
      session.createProducer(topic).send(session.createTextMessage("topic"));
      found += text(heard.receive(WAIT_MS));
      heard.close();
      topic.delete();
      return found;
   }

   private String pull(Work unused, String name) throws Exception {
      String separator = url.contains("?") ? "&" : "?";
      try (Work work = new Work(url + separator + "jms.prefetchPolicy.all=0", "pull")) {
         MessageConsumer consumer = work.session.createConsumer(work.session.createQueue(name));
         List<String> found = new ArrayList<>();
         found.add("" + consumer.receiveNoWait());
         found.add("" + consumer.receive(100));
         send(work, name, 3, "p");
         found.add(text(consumer.receive(WAIT_MS)));
         MessageConsumer other = work.session.createConsumer(work.session.createQueue(name));
         found.add(text(other.receive(WAIT_MS)));
         found.add(text(consumer.receiveNoWait()));
         found.add("" + consumer.receiveNoWait());
         return found.toString();
      }
   }

   private static String expiry(Work work, String name) throws Exception {
      Session session = work.session;
      Queue queue = session.createQueue(name);
      MessageProducer producer = session.createProducer(queue);
      producer.send(session.createTextMessage("gone"), DeliveryMode.PERSISTENT, 4, 1);
      producer.send(session.createTextMessage("here"), DeliveryMode.PERSISTENT, 4, 60_000);
      Thread.sleep(50);
      return receive(work, name).toString();
   }

   private static String groups(Work work, String name) throws Exception {
      Session session = work.session;
      Queue queue = session.createQueue(name);
      MessageConsumer first = session.createConsumer(queue);
      MessageConsumer second = session.createConsumer(queue);
      MessageProducer producer = session.createProducer(queue);
      for (int number = 0; number < 6; number++) {
         TextMessage message = session.createTextMessage("" + number);
         message.setStringProperty("JMSXGroupID", "g");
         message.setIntProperty("JMSXGroupSeq", number + 1);
         producer.send(message);
      }
      int one = rest(first).size();
      int two = rest(second).size();
      return Math.max(one, two) + " " + Math.min(one, two);
   }

   private static String scheduled(Work work, String name) throws Exception {
      Session session = work.session;
      Queue queue = session.createQueue(name);
      TextMessage message = session.createTextMessage("later");
      message.setLongProperty("AMQ_SCHEDULED_DELAY", 600);
      long begun = System.currentTimeMillis();
      session.createProducer(queue).send(message);
      Message got = session.createConsumer(queue).receive(WAIT_MS);
      return text(got) + (System.currentTimeMillis() - begun >= 550);
   }

   private static String noLocal(Work work, String name) throws Exception {
      Session session = work.session;
      Topic topic = session.createTopic(name);
      MessageConsumer consumer = session.createConsumer(topic, null, true);
      MessageConsumer every = session.createConsumer(topic);
      session.createProducer(topic).send(session.createTextMessage("own"));
      return rest(consumer) + " " + rest(every);
   }

   private static String large(Work work, String name, int size) throws Exception {
      Session session = work.session;
      Queue queue = session.createQueue(name);
      byte[] body = new byte[size];
      for (int place = 0; place < size; place++) {
         body[place] = (byte) (place * 31);
      }
      BytesMessage message = session.createBytesMessage();
      message.writeBytes(body);
      session.createProducer(queue).send(message);
      session.createProducer(queue).send(session.createTextMessage("behind"));
      MessageConsumer consumer = session.createConsumer(queue);
      BytesMessage got = (BytesMessage) consumer.receive(60_000);
      byte[] found = new byte[(int) got.getBodyLength()];
      got.readBytes(found);
      return Arrays.equals(body, found) + text(consumer.receive(WAIT_MS));
   }

   private static String compressed(Work work, String name) throws Exception {
      work.connection.setUseCompression(true);
      return types(work, name);
   }

   private String window(Work unused, String name) throws Exception {
      String separator = url.contains("?") ? "&" : "?";
      String parameters = "jms.producerWindowSize=4096&jms.useAsyncSend=true";
      try (Work work = new Work(url + separator + parameters, "window")) {
         send(work, name, 50, "w");
         return "" + receive(work, name).size();
      }
   }

   private String clientId(Work work, String name) throws Exception {
      try (Work first = new Work(url, "taken")) {
         new Work(url, "taken").close();
         return "both";
      } catch (InvalidClientIDException error) {
         return error.getClass().getSimpleName();
      }
   }

   private static String priorities(Work work, String name) throws Exception {
      Session session = work.session;
      MessageProducer producer = session.createProducer(session.createQueue(name));
      for (int priority : new int[] {1, 9, 4}) {
         producer.send(session.createTextMessage("" + priority), DeliveryMode.PERSISTENT, priority, 0);
      }
      return receive(work, name).toString();
   }

   private static String advisories(Work work, String name) throws Exception {
      DestinationSource source = work.connection.getDestinationSource();
      TemporaryQueue made = work.session.createTemporaryQueue();
      boolean seen = false;
      for (int times = 0; times < 50 && !seen; times++) {
         seen = source.getTemporaryQueues().contains(made);
         Thread.sleep(20);
      }
      made.delete();
      boolean gone = false;
      for (int times = 0; times < 50 && !gone; times++) {
         gone = !source.getTemporaryQueues().contains(made);
         Thread.sleep(20);
      }
      return seen + " " + gone;
   }

   private static String virtual(Work work) throws Exception {
      Session session = work.session;
      MessageConsumer a = session.createConsumer(session.createQueue("Consumer.A.VirtualTopic.O"));
      MessageConsumer b = session.createConsumer(session.createQueue("Consumer.B.VirtualTopic.O"));
      session.createProducer(session.createTopic("VirtualTopic.O"))
            .send(session.createTextMessage("v"));
      return rest(a) + " " + rest(b);
   }

   private static String many(Work work, String name, int count) throws Exception {
      Session session = work.session;
      Queue queue = session.createQueue(name);
      MessageProducer producer = session.createProducer(queue);
      long begun = System.nanoTime();
      for (int number = 0; number < count; number++) {
         producer.send(session.createTextMessage("m" + number));
      }
      long sent = System.nanoTime();
      MessageConsumer consumer = session.createConsumer(queue);
      for (int number = 0; number < count; number++) {
         String found = text(consumer.receive(WAIT_MS));
         if (!found.equals("m" + number)) {
            throw new AssertionError(found + " in place of m" + number);
         }
      }
      System.err.println(count * 1_000_000_000L / (sent - begun) + "/s sent, "
            + count * 1_000_000_000L / (System.nanoTime() - sent) + "/s received");
      return "" + count;
   }

   // --- XA

   private static Xid xid(String name) {
      return new Xid() {
         @Override
         public int getFormatId() {
            return 7;
         }

         @Override
         public byte[] getGlobalTransactionId() {
            return name.getBytes();
         }

         @Override
         public byte[] getBranchQualifier() {
            return new byte[] {1};
         }
      };
   }

   private XAConnection xaConnection() throws JMSException {
      XAConnection connection = new ActiveMQXAConnectionFactory(url).createXAConnection();
      connection.setClientID("xa" + clients++);
      connection.start();
      return connection;
   }

   private String xa(Work work, String name) throws Exception {
      List<String> found = new ArrayList<>();
      XAConnection connection = xaConnection();
      XASession session = connection.createXASession();
      XAResource resource = session.getXAResource();
      Queue queue = session.createQueue(name);
      MessageProducer producer = session.createProducer(queue);
      resource.start(xid("1"), XAResource.TMNOFLAGS);
      producer.send(session.createTextMessage("x"));
      resource.end(xid("1"), XAResource.TMSUCCESS);
      found.add("" + resource.prepare(xid("1")));
      resource.start(xid("0"), XAResource.TMNOFLAGS);
      MessageConsumer consumer = session.createConsumer(queue);
      found.add(text(consumer.receive(NOTHING_MS)));
      resource.end(xid("0"), XAResource.TMSUCCESS);
      resource.commit(xid("0"), true);
      resource.commit(xid("1"), false);
      resource.start(xid("2"), XAResource.TMNOFLAGS);
      found.add(text(consumer.receive(WAIT_MS)));
      resource.end(xid("2"), XAResource.TMSUCCESS);
      resource.rollback(xid("2"));
      resource.start(xid("3"), XAResource.TMNOFLAGS);
      found.add(text(consumer.receive(WAIT_MS)));
      resource.end(xid("3"), XAResource.TMSUCCESS);
      resource.commit(xid("3"), true);
      try {
         resource.commit(xid("4"), true);
      } catch (XAException error) {
         found.add("" + error.errorCode);
      }
      connection.close();
      found.add(receive(work, name).toString());
      return found.toString();
   }

   private String xaPrepare(String name) throws Exception {
      XAConnection connection = xaConnection();
      XASession session = connection.createXASession();
      XAResource resource = session.getXAResource();
      Queue queue = session.createQueue(name);
      resource.start(xid("p"), XAResource.TMNOFLAGS);
      String found = text(session.createConsumer(queue).receive(WAIT_MS));
      session.createProducer(queue).send(session.createTextMessage("new"));
      resource.end(xid("p"), XAResource.TMSUCCESS);
      resource.prepare(xid("p"));
      return found;
   }

   private String xaRecover(boolean commits) throws Exception {
      XAConnection connection = xaConnection();
      XAResource resource = connection.createXASession().getXAResource();
      Xid[] found = resource.recover(XAResource.TMSTARTRSCAN);
      for (Xid one : found) {
         if (commits) {
            resource.commit(one, false);
         } else {
            resource.rollback(one);
         }
      }
      connection.close();
      return "" + found.length;
   }
}
