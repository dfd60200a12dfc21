import java.lang.reflect.Proxy;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import javax.jms.Connection;
import javax.jms.ConnectionFactory;
import javax.jms.JMSException;
import javax.jms.Session;
import javax.naming.Context;
import javax.naming.NameNotFoundException;
import org.objectweb.jtests.jms.admin.Admin;

/**
 * What the suite asks a provider for, of any client whose factory takes a URL.
 *
 * System properties: joram.factory names the class of the factory, joram.url is what it takes. A queue or topic of a
 * test has a name of its own on the broker, so nothing of it is left for the next one.
 */
public class JoramAdmin implements Admin {

   private static final Map<String, Object> NAMES = new ConcurrentHashMap<>();
   private static final long RUN = System.currentTimeMillis();
   private static Session session;
   private static int made;

   @Override
   public String getName() {
      return System.getProperty("joram.factory");
   }

   private static ConnectionFactory factory() {
      try {
         Class<?> type = Class.forName(System.getProperty("joram.factory"));
         return (ConnectionFactory) type.getConstructor(String.class).newInstance(System.getProperty("joram.url"));
      } catch (ReflectiveOperationException error) {
         throw new IllegalStateException(error);
      }
   }

   /** Makes destinations, and does nothing else. */
   private static synchronized Session session() throws JMSException {
      if (session == null) {
         Connection connection = factory().createConnection();
         session = connection.createSession(false, Session.AUTO_ACKNOWLEDGE);
      }
      return session;
   }

   private static synchronized String place(String name) {
      return name + "." + RUN + "." + ++made;
   }

   @Override
   public Context createContext() {
      return (Context) Proxy.newProxyInstance(JoramAdmin.class.getClassLoader(), new Class<?>[]{Context.class}, (proxy, method, arguments) -> {
         if (!method.getName().equals("lookup")) {
            throw new UnsupportedOperationException(method.getName());
         }
         Object found = NAMES.get(arguments[0].toString());
         if (found == null) {
            throw new NameNotFoundException(arguments[0].toString());
         }
         return found;
      });
   }

   @Override
   public void createConnectionFactory(String name) {
      NAMES.put(name, factory());
   }

   @Override
   public void createQueueConnectionFactory(String name) {
      createConnectionFactory(name);
   }

   @Override
   public void createTopicConnectionFactory(String name) {
      createConnectionFactory(name);
   }

   @Override
   public void createQueue(String name) {
      try {
         NAMES.put(name, session().createQueue(place(name)));
      } catch (JMSException error) {
         throw new IllegalStateException(error);
      }
   }

   @Override
   public void createTopic(String name) {
      try {
         NAMES.put(name, session().createTopic(place(name)));
      } catch (JMSException error) {
         throw new IllegalStateException(error);
      }
   }

   @Override
   public void deleteQueue(String name) {
      NAMES.remove(name);
   }

   @Override
   public void deleteTopic(String name) {
      NAMES.remove(name);
   }

   @Override
   public void deleteConnectionFactory(String name) {
      NAMES.remove(name);
   }

   @Override
   public void deleteQueueConnectionFactory(String name) {
      NAMES.remove(name);
   }

   @Override
   public void deleteTopicConnectionFactory(String name) {
      NAMES.remove(name);
   }

   @Override
   public void startServer() {
   }

   @Override
   public void stopServer() {
   }

   @Override
   public void start() {
   }

   @Override
   public void stop() {
   }
}
