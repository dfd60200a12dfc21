package interop;

import java.io.File;
import java.io.InputStream;
import java.io.OutputStream;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicLong;

import org.apache.activemq.artemis.cli.commands.ActionContext;
import org.apache.activemq.artemis.cli.commands.util.SyncCalculation;
import org.apache.activemq.artemis.core.journal.Journal;
import org.apache.activemq.artemis.core.journal.Journal;
import org.apache.activemq.artemis.core.journal.JournalLoadInformation;
import org.apache.activemq.artemis.core.journal.LoaderCallback;
import org.apache.activemq.artemis.core.journal.PreparedTransactionInfo;
import org.apache.activemq.artemis.core.journal.RecordInfo;
import org.apache.activemq.artemis.core.server.JournalType;

/** Times Artemis's journal: appends, load, compaction; and its own calibration of the buffer timer. */
final class Bench {
   private static final int LATENCIES_MAX = 1 << 22;

   private Bench() {
   }

   /**
    * Appends from `producers` threads for `seconds`; with `sync=true` each waits for the disk.
    *
    * Unsynced producers append `records` in all, and the time runs until the journal has flushed them: its appends are
    * queued without a bound, so counting calls would measure the queue.
    */
   static Map<String, Object> append(Settings settings) throws Exception {
      int producers = (int) settings.number("producers", 1);
      boolean sync = settings.flag("sync", true);
      byte[] body = new byte[(int) settings.number("record_size", 1024)];
      Arrays.fill(body, (byte) 'x');
      long duration = (long) (Double.parseDouble(settings.text("seconds", "1")) * 1e9);
      long perProducer = sync ? Long.MAX_VALUE : settings.number("records", 200_000) / producers;
      OpenJournal journal = settings.journal();
      journal.start();
      try {
         Views.load(journal);
         journal.debugWait();
         AtomicLong ids = new AtomicLong(1);
         Producer[] threads = new Producer[producers];
         long begin = System.nanoTime();
         for (int i = 0; i < producers; i++) {
            threads[i] = new Producer(journal, ids, body, sync, sync ? begin + duration : Long.MAX_VALUE, perProducer);
            threads[i].start();
         }
         List<long[]> latencies = new ArrayList<>();
         for (Producer thread : threads) {
            thread.join();
            if (thread.error != null) {
               throw thread.error;
            }
            latencies.add(Arrays.copyOf(thread.latencies, thread.latencyCount));
         }
         if (!sync) {
            journal.flush();
         }
         double seconds = (System.nanoTime() - begin) / 1e9;
         long count = ids.get() - 1;
         long[] sorted = latencies.stream().flatMapToLong(Arrays::stream).sorted().toArray();
         return Json.object("records", count,
                            "seconds", seconds,
                            "records_per_s", count / seconds,
                            "p50_us", percentile(sorted, 0.5),
                            "p99_us", percentile(sorted, 0.99),
                            "p999_us", percentile(sorted, 0.999));
      } finally {
         journal.stop();
      }
   }

   private static Double percentile(long[] sorted, double fraction) {
      return sorted.length == 0 ? null : sorted[(int) (sorted.length * fraction)] / 1e3;
   }

   static final class Producer extends Thread {
      final long[] latencies;
      int latencyCount;
      Exception error;
      private final Journal journal;
      private final AtomicLong ids;
      private final byte[] body;
      private final boolean sync;
      private final long end;
      private final long count;

      Producer(Journal journal, AtomicLong ids, byte[] body, boolean sync, long end, long count) {
         this.journal = journal;
         this.ids = ids;
         this.body = body;
         this.sync = sync;
         this.end = end;
         this.count = count;
         latencies = new long[sync ? LATENCIES_MAX / 16 : 0];
      }

      @Override
      public void run() {
         try {
            long now = System.nanoTime();
            for (long i = 0; i < count && now < end; i++) {
               journal.appendAddRecord(ids.getAndIncrement(), (byte) 1, body, sync);
               if (sync) {
                  long done = System.nanoTime();
                  if (latencyCount < latencies.length) {
                     latencies[latencyCount++] = done - now;
                  }
                  now = done;
               }
            }
         } catch (Exception e) {
            error = e;
         }
      }
   }

   /** Loads the folder through the callback that a broker uses, keeping nothing. */
   static Map<String, Object> load(Settings settings) throws Exception {
      long[] callbacks = new long[1];
      OpenJournal journal = settings.journal();
      journal.start();
      try {
         long begin = System.nanoTime();
         JournalLoadInformation information = journal.load(new CountingLoader(callbacks));
         double seconds = (System.nanoTime() - begin) / 1e9;
         return Json.object("records", information.getNumberOfRecords(),
                            "callbacks", callbacks[0],
                            "seconds", seconds,
                            "records_per_s", callbacks[0] / seconds);
      } finally {
         journal.stop();
      }
   }

   record CountingLoader(long[] count) implements LoaderCallback {
      @Override
      public void addPreparedTransaction(PreparedTransactionInfo transaction) {
         count[0]++;
      }

      @Override
      public void addRecord(RecordInfo record) {
         count[0]++;
      }

      @Override
      public void deleteRecord(long id) {
         count[0]++;
      }

      @Override
      public void updateRecord(RecordInfo record) {
         count[0]++;
      }

      @Override
      public void failedTransaction(long tx, List<RecordInfo> records, List<RecordInfo> deletes) {
         count[0]++;
      }
   }

   /** Loads the folder and compacts it; MB/s counts the bytes of the data files that the compaction read. */
   static Map<String, Object> compact(Settings settings) throws Exception {
      OpenJournal journal = settings.journal();
      journal.start();
      try {
         journal.load(new CountingLoader(new long[1]));
         journal.debugWait();
         long files = journal.getDataFilesCount() + 1;
         long begin = System.nanoTime();
         journal.testCompact();
         double seconds = (System.nanoTime() - begin) / 1e9;
         return Json.object("files", files,
                            "seconds", seconds,
                            "mb_per_s", files * (double) settings.fileSize() / 1e6 / seconds);
      } finally {
         journal.stop();
      }
   }

   /** The buffer timeout that Artemis's perf-journal command suggests for this folder, with its default sizes. */
   static Map<String, Object> calibrate(Settings settings) throws Exception {
      int writes = (int) settings.number("writes", 250);
      File directory = settings.directory();
      ActionContext context = new ActionContext(InputStream.nullInputStream(),
                                                new java.io.PrintStream(OutputStream.nullOutputStream()),
                                                new java.io.PrintStream(OutputStream.nullOutputStream()));
      long milliseconds = SyncCalculation.syncTest(directory, (int) settings.number("block_size", 4096), writes, 5, false,
                                                   settings.flag("datasync", true), settings.flag("sync_writes", false),
                                                   "calibrate.tmp", settings.maxIo(),
                                                   JournalType.getType(settings.text("type", "NIO")), context);
      long timeout = SyncCalculation.toNanos(Math.max(milliseconds, 1), writes, false, context);
      return Json.object("buffer_timeout_ns", timeout, "milliseconds", milliseconds, "writes", writes);
   }
}
