import java.io.File;
import java.util.Arrays;
import org.apache.activemq.broker.BrokerService;
import org.apache.activemq.broker.region.policy.ConstantPendingMessageLimitStrategy;
import org.apache.activemq.broker.region.policy.PolicyEntry;
import org.apache.activemq.broker.region.policy.PolicyMap;
import org.apache.activemq.store.kahadb.KahaDBPersistenceAdapter;
import org.apache.activemq.usage.SystemUsage;

/**
 * Runs ActiveMQ Classic until SIGTERM: its folder, then the URI of each connector.
 *
 * What is set is what the activemq.xml of its distribution sets, without the web console. KahaDB
 * has its defaults: each write of the journal is synced before it is confirmed.
 */
public final class RunClassic {
    private static final long GIBIBYTE = 1L << 30;
    private static final int WAITING_OF_A_TOPIC_MAX = 1000;

    private RunClassic() {}

    public static void main(String[] args) throws Exception {
        BrokerService broker = new BrokerService();
        broker.setBrokerName("localhost");
        broker.setDataDirectory(args[0]);
        broker.getManagementContext().setCreateConnector(false);
        KahaDBPersistenceAdapter store = new KahaDBPersistenceAdapter();
        store.setDirectory(new File(args[0], "kahadb"));
        broker.setPersistenceAdapter(store);
        SystemUsage usage = broker.getSystemUsage();
        usage.getMemoryUsage().setPercentOfJvmHeap(70);
        usage.getStoreUsage().setLimit(100 * GIBIBYTE);
        usage.getTempUsage().setLimit(50 * GIBIBYTE);
        ConstantPendingMessageLimitStrategy waiting = new ConstantPendingMessageLimitStrategy();
        waiting.setLimit(WAITING_OF_A_TOPIC_MAX);
        PolicyEntry topics = new PolicyEntry();
        topics.setTopic(">");
        topics.setPendingMessageLimitStrategy(waiting);
        PolicyMap policies = new PolicyMap();
        policies.setPolicyEntries(Arrays.asList(topics));
        broker.setDestinationPolicy(policies);
        for (int i = 1; i < args.length; i++) {
            broker.addConnector(args[i]);
        }
        broker.start();
        broker.waitUntilStopped();
    }
}
