import java.nio.file.Path;
import java.util.concurrent.CountDownLatch;
import java.util.logging.Level;
import java.util.logging.Logger;
import org.apache.activemq.artemis.core.config.FileDeploymentManager;
import org.apache.activemq.artemis.core.config.impl.FileConfiguration;
import org.apache.activemq.artemis.core.server.impl.ActiveMQServerImpl;
import org.apache.activemq.artemis.spi.core.security.ActiveMQJAASSecurityManager;

/**
 * Runs an Artemis broker on the instance folder that is its argument, until SIGTERM.
 *
 * The caller sets the system properties artemis.instance, data.dir and java.security.auth.login.config.
 */
public final class RunBroker {
   /** Kept, as a logger that is not referred to forgets its level. */
   private static final Logger AUDIT = Logger.getLogger("org.apache.activemq.audit");

   private RunBroker() {
   }

   public static void main(String[] arguments) throws Exception {
      AUDIT.setLevel(Level.OFF);
      FileConfiguration configuration = new FileConfiguration();
      FileDeploymentManager files = new FileDeploymentManager(Path.of(arguments[0], "etc", "broker.xml").toUri().toURL().toString());
      files.addDeployable(configuration);
      files.readConfiguration();
      ActiveMQServerImpl server = new ActiveMQServerImpl(configuration, new ActiveMQJAASSecurityManager("activemq"));
      CountDownLatch ended = new CountDownLatch(1);
      Runtime.getRuntime().addShutdownHook(new Thread(() -> {
         try {
            server.stop(true);
         } catch (Exception e) {
            e.printStackTrace();
         }
         ended.countDown();
      }));
      server.start();
      ended.await();
   }
}
