import com.arjuna.ats.jta.TransactionManager;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import org.apache.activemq.artemis.jms.bridge.ConnectionFactoryFactory;
import org.apache.activemq.artemis.jms.bridge.DestinationFactory;
import org.apache.activemq.artemis.jms.bridge.QualityOfServiceMode;
import org.apache.activemq.artemis.jms.bridge.impl.JMSBridgeImpl;
import org.apache.activemq.artemis.jms.client.ActiveMQJMSConnectionFactory;
import org.apache.activemq.artemis.jms.client.ActiveMQQueue;
import org.apache.activemq.artemis.jms.client.ActiveMQXAConnectionFactory;

/**
 * Artemis's JMS bridge, driven by lines on the standard input. Arguments: user and password.
 *
 * `start SOURCE TARGET QUEUE QUALITY BATCH-SIZE BATCH-TIME` begins to bridge a queue to that of the
 * same name: two URIs, a QualityOfServiceMode, messages, milliseconds. `stop` ends it. Each line is
 * answered by `ok`, or `error` and why. Transactions are Narayana's, whose log of plain files lies
 * where the property ObjectStoreEnvironmentBean.objectStoreDir says.
 */
public final class RunBridge {
    private static final long RETRY_MS = 1000;

    private final String user;
    private final String password;
    private JMSBridgeImpl bridge;

    private RunBridge(String user, String password) {
        this.user = user;
        this.password = password;
    }

    public static void main(String[] args) throws Exception {
        RunBridge run = new RunBridge(args[0], args[1]);
        BufferedReader lines =
                new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = lines.readLine()) != null; ) {
            String answer = "ok";
            try {
                run.obey(line.split(" "));
            } catch (Exception error) {
                answer = "error " + error;
            }
            System.out.println(answer);
            System.out.flush();
        }
        System.exit(0);
    }

    private void obey(String[] words) throws Exception {
        if (words[0].equals("stop")) {
            bridge.stop();
            return;
        }
        QualityOfServiceMode quality = QualityOfServiceMode.valueOf(words[4]);
        boolean isXa = quality == QualityOfServiceMode.ONCE_AND_ONLY_ONCE;
        DestinationFactory queue = () -> new ActiveMQQueue(words[3]);
        bridge =
                new JMSBridgeImpl(
                        factory(words[1], isXa),
                        factory(words[2], isXa),
                        queue,
                        queue,
                        user,
                        password,
                        user,
                        password,
                        null,
                        RETRY_MS,
                        -1,
                        quality,
                        Integer.parseInt(words[5]),
                        Long.parseLong(words[6]),
                        null,
                        null,
                        false);
        bridge.setBridgeName(words[3]);
        bridge.setTransactionManager(TransactionManager.transactionManager());
        bridge.start();
    }

    private static ConnectionFactoryFactory factory(String uri, boolean isXa) {
        return () ->
                isXa ? new ActiveMQXAConnectionFactory(uri) : new ActiveMQJMSConnectionFactory(uri);
    }
}
