package interop;

import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import java.util.concurrent.ScheduledExecutorService;

import org.apache.activemq.artemis.core.server.ActivateCallback;
import org.apache.activemq.artemis.core.server.impl.jdbc.JdbcNodeManager;
import org.apache.commons.dbcp2.BasicDataSource;

/**
 * Node managers of Artemis over one database, kept by name from request to request.
 *
 * open starts one and reports its node id; start-primary, start-backup and await-primary go on in the background, and
 * `done` reports whether the last of them has ended, throwing what it threw; activated, pause, crash, release-backup,
 * is-active, is-awaiting-failback, interrupt and stop are the methods of those names.
 */
final class SqlNodes {
   private static final Map<String, SqlNodes> OPEN = new HashMap<>();

   private final ScheduledExecutorService scheduler = Executors.newScheduledThreadPool(2);
   private final ExecutorService background = Executors.newCachedThreadPool();
   private final BasicDataSource source;
   private final JdbcNodeManager manager;
   private volatile ActivateCallback activation;
   private Future<?> running;

   private SqlNodes(Settings settings) throws Exception {
      source = SqlSettings.source(settings);
      manager = JdbcNodeManager.with(SqlSettings.of(settings, source), scheduler, null);
      manager.start();
   }

   static Object act(Settings settings) throws Exception {
      String name = settings.text("name");
      String action = settings.text("action");
      if (action.equals("open")) {
         SqlNodes opened = new SqlNodes(settings);
         OPEN.put(name, opened);
         return opened.manager.getNodeId().toString();
      }
      return OPEN.get(name).act(name, action);
   }

   private Object act(String name, String action) throws Exception {
      switch (action) {
         case "start-primary" -> running = background.submit(() -> {
            activation = manager.startPrimaryNode();
            return null;
         });
         case "start-backup" -> running = background.submit(() -> {
            manager.startBackup();
            return null;
         });
         case "await-primary" -> running = background.submit(() -> {
            manager.awaitPrimaryNode();
            return null;
         });
         case "done" -> {
            if (!running.isDone()) {
               return false;
            }
            running.get();
            return true;
         }
         case "activated" -> activation.activationComplete();
         case "pause" -> manager.pausePrimaryServer();
         case "crash" -> manager.crashPrimaryServer();
         case "release-backup" -> manager.releaseBackup();
         case "is-active" -> {
            return manager.isBackupActive();
         }
         case "is-awaiting-failback" -> {
            return manager.isAwaitingFailback();
         }
         case "interrupt" -> manager.interrupt();
         case "stop" -> {
            OPEN.remove(name);
            manager.stop();
            scheduler.shutdownNow();
            background.shutdownNow();
            source.close();
         }
         default -> throw new IllegalArgumentException("unknown action " + action);
      }
      return null;
   }
}
