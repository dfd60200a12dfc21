package interop;

import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.TimeUnit;

import org.apache.activemq.artemis.api.core.ActiveMQBuffer;
import org.apache.activemq.artemis.core.config.storage.DatabaseStorageConfiguration;
import org.apache.activemq.artemis.core.journal.IOCompletion;
import org.apache.activemq.artemis.core.persistence.CoreMessageObjectPools;
import org.apache.activemq.artemis.core.persistence.Persister;
import org.apache.activemq.artemis.jdbc.store.journal.JDBCJournalImpl;
import org.apache.activemq.artemis.jdbc.store.sql.SQLProvider;
import org.apache.commons.dbcp2.BasicDataSource;

/**
 * Artemis's journal in a table, driven by a script: one operation a line, as in tests/golden/README.md.
 *
 * add, upd, del, txadd, txupd, txdel, prepare, commit, rollback; and `updcb`, an update with a callback, which the
 * reference writes as an add. Every operation is waited for before the next, but for those that end in `nosync`.
 */
final class SqlJournal {
   private final ScheduledExecutorService scheduler = Executors.newScheduledThreadPool(1);
   private final ExecutorService completions = Executors.newFixedThreadPool(2);
   private final List<String> failures = new ArrayList<>();
   private final BasicDataSource source;
   private final DatabaseStorageConfiguration configuration;
   final JDBCJournalImpl journal;
   private String[] words;
   private boolean sync;

   SqlJournal(Settings settings) throws Exception {
      source = SqlSettings.source(settings);
      configuration = SqlSettings.of(settings, source);
      String table = settings.text("table");
      SQLProvider provider = SqlSettings.provider(configuration, table, SQLProvider.DatabaseStoreType.MESSAGE_JOURNAL);
      journal = new JDBCJournalImpl(configuration.getConnectionProvider(), provider, scheduler, completions, (error, message, file) -> {
         synchronized (failures) {
            failures.add(message + ": " + error);
         }
      }, configuration.getJdbcJournalSyncPeriodMillis());
   }

   /** What a load of the table gives, as of a folder. */
   static Map<String, Object> load(Settings settings) throws Exception {
      SqlJournal one = new SqlJournal(settings);
      try {
         one.journal.start();
         return Views.load(one.journal);
      } finally {
         one.close();
      }
   }

   /** Runs the lines of the file `script` on the loaded journal; what the load gave. */
   static Map<String, Object> run(Settings settings) throws Exception {
      SqlJournal one = new SqlJournal(settings);
      try {
         one.journal.start();
         Map<String, Object> view = Views.load(one.journal);
         for (String line : Files.readAllLines(Path.of(settings.text("script")))) {
            if (!line.isBlank() && !line.startsWith("#")) {
               one.step(line);
            }
         }
         return view;
      } finally {
         one.close();
      }
   }

   void close() throws Exception {
      journal.stop();
      scheduler.shutdownNow();
      completions.shutdown();
      completions.awaitTermination(60, TimeUnit.SECONDS);
      source.close();
      synchronized (failures) {
         if (!failures.isEmpty()) {
            throw new IllegalStateException(failures.toString());
         }
      }
   }

   private void step(String line) throws Exception {
      words = line.trim().split(" +");
      sync = !words[words.length - 1].equals("nosync");
      switch (words[0]) {
         case "add" -> journal.appendAddRecord(number(1), userType(2), body(3), sync);
         case "upd" -> journal.appendUpdateRecord(number(1), userType(2), body(3), sync);
         case "updcb" -> updateWithCallback();
         case "del" -> journal.appendDeleteRecord(number(1), sync);
         case "txadd" -> journal.appendAddRecordTransactional(number(1), number(2), userType(3), body(4));
         case "txupd" -> journal.appendUpdateRecordTransactional(number(1), number(2), userType(3), body(4));
         case "txdel" -> journal.appendDeleteRecordTransactional(number(1), number(2), body(3));
         case "prepare" -> journal.appendPrepareRecord(number(1), body(2), sync);
         case "commit" -> journal.appendCommitRecord(number(1), sync);
         case "rollback" -> journal.appendRollbackRecord(number(1), sync);
         default -> throw new IllegalArgumentException("unknown operation: " + line);
      }
   }

   private long number(int index) {
      return Long.parseLong(words[index]);
   }

   private byte userType(int index) {
      return (byte) Integer.parseInt(words[index]);
   }

   private byte[] body(int index) {
      return Bodies.parse(words[index]);
   }

   private void updateWithCallback() throws Exception {
      Callback done = new Callback();
      journal.appendUpdateRecord(number(1), userType(2), RawBytes.INSTANCE, body(3), false, done);
      done.await();
   }

   /** Waits for one record. */
   private static final class Callback implements IOCompletion {
      private final CountDownLatch latch = new CountDownLatch(1);
      private volatile String failure;

      @Override
      public void storeLineUp() {
      }

      @Override
      public void done() {
         latch.countDown();
      }

      @Override
      public void onError(int errorCode, String errorMessage) {
         failure = errorMessage;
         latch.countDown();
      }

      void await() throws InterruptedException {
         if (!latch.await(60, TimeUnit.SECONDS)) {
            throw new IllegalStateException("no callback came");
         }
         if (failure != null) {
            throw new IllegalStateException(failure);
         }
      }
   }

   /** Encodes a byte array as itself. */
   static final class RawBytes implements Persister<byte[]> {
      static final RawBytes INSTANCE = new RawBytes();

      @Override
      public byte getID() {
         return 0;
      }

      @Override
      public int getEncodeSize(byte[] record) {
         return record.length;
      }

      @Override
      public void encode(ActiveMQBuffer buffer, byte[] record) {
         buffer.writeBytes(record);
      }

      @Override
      public byte[] decode(ActiveMQBuffer buffer, byte[] record, CoreMessageObjectPools pools) {
         throw new UnsupportedOperationException("only written");
      }
   }
}
