import java.util.LinkedHashMap;
import java.util.Map;
import org.apache.activemq.command.*;
import org.apache.activemq.openwire.OpenWireFormat;
import org.apache.activemq.util.ByteSequence;

/** Prints commands as ActiveMQ Classic's client marshals them: version, encoding, name, bytes. */
public class Golden {

   public static void main(String[] arguments) throws Exception {
      System.setProperty("org.apache.activemq.SERIALIZABLE_PACKAGES", "*");
      for (int version : new int[] {1, 2, 3, 5, 6, 7, 8, 9, 10, 11, 12}) {
         for (boolean isTight : new boolean[] {false, true}) {
            for (Map.Entry<String, Command> one : commands().entrySet()) {
               OpenWireFormat format = new OpenWireFormat(version);
               format.setVersion(version);
               format.setCacheEnabled(false);
               format.setTightEncodingEnabled(isTight);
               format.setStackTraceEnabled(false);
               format.setSizePrefixDisabled(false);
               if (one.getKey().equals("MessagePull") && version < 2
                     || one.getKey().equals("ProducerAck") && version < 3) {
                  continue;
               }
               ByteSequence bytes = format.marshal(one.getValue());
               StringBuilder text = new StringBuilder();
               for (int place = 0; place < bytes.length; place++) {
                  text.append(String.format("%02x", bytes.data[bytes.offset + place]));
               }
               String encoding = isTight ? "tight" : "loose";
               System.out.println(version + " " + encoding + " " + one.getKey() + " " + text);
            }
         }
      }
   }

   private static Map<String, Command> commands() throws Exception {
      Map<String, Command> made = new LinkedHashMap<>();
      ConnectionId connection = new ConnectionId("ID:host-1-2-0:1");
      SessionId session = new SessionId(connection, 1);
      ProducerId producer = new ProducerId(session, 70_000);
      ConsumerId consumer = new ConsumerId(session, 1L << 40);
      ActiveMQQueue queue = new ActiveMQQueue("a.b");
      MessageId first = new MessageId(producer, 3);
      MessageId last = new MessageId(producer, 300);
      ConnectionInfo info = new ConnectionInfo(connection);
      info.setClientId("gr\u00fc\u00dfe \ud83d\ude00");
      info.setUserName("user");
      info.setPassword("secret");
      info.setManageable(true);
      info.setFaultTolerant(true);
      info.setClientIp("127.0.0.1");
      put(made, info);
      put(made, new SessionInfo(session));
      ConsumerInfo consumes = new ConsumerInfo(consumer);
      consumes.setDestination(new ActiveMQTopic("a.>"));
      consumes.setPrefetchSize(1000);
      consumes.setSelector("n = 1");
      consumes.setSubscriptionName("sub");
      consumes.setClientId("client");
      consumes.setNoLocal(true);
      consumes.setPriority((byte) 5);
      put(made, consumes);
      ProducerInfo produces = new ProducerInfo(producer);
      produces.setDestination(queue);
      produces.setWindowSize(4096);
      put(made, produces);
      put(made, new RemoveInfo(consumer));
      put(made, new KeepAliveInfo());
      put(made, new ShutdownInfo());
      DestinationInfo destination =
            new DestinationInfo(connection, (byte) 0, new ActiveMQTempQueue(connection, 1));
      put(made, destination);
      RemoveSubscriptionInfo subscription = new RemoveSubscriptionInfo();
      subscription.setConnectionId(connection);
      subscription.setClientId("client");
      subscription.setSubscriptionName("sub");
      put(made, subscription);
      put(made, new TransactionInfo(connection, new LocalTransactionId(connection, 5), (byte) 2));
      XATransactionId xa = new XATransactionId();
      xa.setFormatId(7);
      xa.setGlobalTransactionId(new byte[] {1, 2, 3});
      xa.setBranchQualifier(new byte[] {4});
      TransactionInfo prepare = new TransactionInfo(connection, xa, (byte) 1);
      prepare.setResponseRequired(true);
      put(made, "XA", prepare);
      MessageAck ack = new MessageAck();
      ack.setDestination(queue);
      ack.setConsumerId(consumer);
      ack.setAckType((byte) 2);
      ack.setFirstMessageId(first);
      ack.setLastMessageId(last);
      ack.setMessageCount(298);
      put(made, ack);
      MessageAck poison = new MessageAck();
      ack.copy(poison);
      poison.setAckType((byte) 1);
      poison.setPoisonCause(new IllegalStateException("why"));
      put(made, "poison", poison);
      MessagePull pull = new MessagePull();
      pull.setConsumerId(consumer);
      pull.setDestination(queue);
      pull.setTimeout(-1);
      put(made, pull);
      ConsumerControl control = new ConsumerControl();
      control.setConsumerId(consumer);
      control.setPrefetch(10);
      put(made, control);
      ActiveMQMessage[] messages = {
         new ActiveMQMessage(), new ActiveMQBytesMessage(), new ActiveMQMapMessage(),
         new ActiveMQObjectMessage(), new ActiveMQStreamMessage(), new ActiveMQTextMessage()
      };
      ((ActiveMQBytesMessage) messages[1]).writeBytes(new byte[] {0, 1, 2, -1});
      ((ActiveMQMapMessage) messages[2]).setLong("key", 9);
      ((ActiveMQObjectMessage) messages[3]).setObject("object");
      ((ActiveMQStreamMessage) messages[4]).writeString("value");
      ((ActiveMQTextMessage) messages[5]).setText("text");
      for (ActiveMQMessage message : messages) {
         message.setCommandId(11);
         message.setProducerId(producer);
         message.setMessageId(first);
         message.setDestination(queue);
         message.setPersistent(true);
         message.setPriority((byte) 4);
         message.setTimestamp(1_700_000_000_000L);
         message.setExpiration(1_800_000_000_000L);
         message.setReplyTo(new ActiveMQTopic("answers"));
         message.setCorrelationId("c");
         message.setType("kind");
         message.setGroupID("g");
         message.setGroupSequence(2);
         message.setStringProperty("name", "value");
         message.onSend();
         put(made, message);
      }
      MessageDispatch dispatch = new MessageDispatch();
      dispatch.setConsumerId(consumer);
      dispatch.setDestination(queue);
      dispatch.setMessage(messages[5]);
      dispatch.setRedeliveryCounter(1);
      put(made, dispatch);
      Response response = new Response();
      response.setCorrelationId(9);
      put(made, response);
      put(made, new ExceptionResponse(new javax.jms.JMSException("refused")));
      DataArrayResponse data = new DataArrayResponse();
      data.setData(new DataStructure[] {xa});
      put(made, data);
      put(made, new IntegerResponse(3));
      ConnectionControl where = new ConnectionControl();
      where.setConnectedBrokers("tcp://127.0.0.1:61616");
      where.setRebalanceConnection(true);
      put(made, where);
      put(made, new ProducerAck(producer, 1024));
      BrokerInfo broker = new BrokerInfo();
      broker.setBrokerId(new BrokerId("broker"));
      broker.setBrokerName("localhost");
      broker.setBrokerURL("tcp:///127.0.0.1:61616");
      put(made, broker);
      return made;
   }

   private static void put(Map<String, Command> made, Command command) {
      put(made, command.getClass().getSimpleName(), command);
   }

   private static void put(Map<String, Command> made, String name, Command command) {
      made.put(name, command);
   }
}
