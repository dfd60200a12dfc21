import io.nats.client.Connection;
import io.nats.client.Dispatcher;
import io.nats.client.JetStream;
import io.nats.client.JetStreamOptions;
import io.nats.client.Nats;
import io.nats.client.Options;
import io.nats.client.PushSubscribeOptions;
import io.nats.client.api.AckPolicy;
import io.nats.client.api.ConsumerConfiguration;
import io.nats.client.api.RetentionPolicy;
import io.nats.client.api.StorageType;
import io.nats.client.api.StreamConfiguration;

/** The load of Load.java on NATS JetStream: a work queue for each producer, in files or in memory. */
public final class NatsLoad extends Load {
    private NatsLoad(String[] args) {
        super(args);
    }

    public static void main(String[] args) throws Exception {
        new NatsLoad(args).run();
    }

    private Connection open() throws Exception {
        return Nats.connect(new Options.Builder().server(uri).build());
    }

    @Override
    Sender connect(String queue) throws Exception {
        Connection taking = open();
        taking.jetStreamManagement()
                .addStream(
                        StreamConfiguration.builder()
                                .name(queue)
                                .subjects(queue)
                                .retentionPolicy(RetentionPolicy.WorkQueue)
                                .storageType(durable ? StorageType.File : StorageType.Memory)
                                .build());
        Dispatcher dispatcher = taking.createDispatcher();
        ConsumerConfiguration configuration =
                ConsumerConfiguration.builder()
                        .ackPolicy(AckPolicy.Explicit)
                        .maxAckPending(10_000)
                        .build();
        taking.jetStream()
                .subscribe(
                        queue,
                        dispatcher,
                        message -> {
                            taken();
                            message.ack();
                        },
                        false,
                        PushSubscribeOptions.builder()
                                .stream(queue)
                                .configuration(configuration)
                                .build());
        JetStream stream = open().jetStream(JetStreamOptions.DEFAULT_JS_OPTIONS);
        return confirmed ->
                stream.publishAsync(queue, body)
                        .whenComplete(
                                (answer, error) -> {
                                    if (error != null) {
                                        error.printStackTrace();
                                        System.exit(1);
                                    }
                                    confirmed.run();
                                });
    }
}
