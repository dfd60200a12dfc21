package interop;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;

import org.apache.activemq.artemis.core.journal.IOCompletion;
import org.apache.activemq.artemis.core.journal.RecordInfo;

/** Times Artemis's journal in a table, which must be empty before an append. */
final class SqlBench {
   private SqlBench() {
   }

   /**
    * Appends records of `record_size` bytes for `seconds`, as `workload` says; how many a second.
    *
    *   blocking      each of `producers` threads waits for each record
    *   in-flight     one thread, which waits only when `producers` records are not yet told to be there
    *   transactions  one thread, which waits for each commit of two adds; counts the commits
    */
   static Map<String, Object> append(Settings settings) throws Exception {
      byte[] body = new byte[(int) settings.number("record_size", 1024)];
      Arrays.fill(body, (byte) 'x');
      int producers = (int) settings.number("producers", 1);
      long duration = (long) (Double.parseDouble(settings.text("seconds", "1")) * 1e9);
      SqlJournal one = new SqlJournal(settings);
      try {
         one.journal.start();
         loaded(one, new ArrayList<>());
         long begin = System.nanoTime();
         long end = begin + duration;
         long count = switch (settings.text("workload")) {
            case "blocking" -> blocking(one, body, producers, end);
            case "in-flight" -> inFlight(one, body, producers, end);
            case "transactions" -> transactions(one, body, end);
            default -> throw new IllegalArgumentException("unknown workload");
         };
         double seconds = (System.nanoTime() - begin) / 1e9;
         return Json.object("count", count, "seconds", seconds, "per_s", count / seconds);
      } finally {
         one.close();
      }
   }

   private static long blocking(SqlJournal one, byte[] body, int producers, long end) throws Exception {
      AtomicLong ids = new AtomicLong(1);
      Bench.Producer[] threads = new Bench.Producer[producers];
      for (int i = 0; i < producers; i++) {
         threads[i] = new Bench.Producer(one.journal, ids, body, true, end, Long.MAX_VALUE);
         threads[i].start();
      }
      for (Bench.Producer thread : threads) {
         thread.join();
         if (thread.error != null) {
            throw thread.error;
         }
      }
      return ids.get() - 1;
   }

   private static long inFlight(SqlJournal one, byte[] body, int window, long end) throws Exception {
      Room room = new Room(new Semaphore(window));
      long count = 0;
      while (System.nanoTime() < end) {
         room.permits.acquire();
         one.journal.appendAddRecord(++count, (byte) 1, SqlJournal.RawBytes.INSTANCE, body, true, room);
      }
      room.permits.acquire(window);
      return count;
   }

   private static long transactions(SqlJournal one, byte[] body, long end) throws Exception {
      long count = 0;
      while (System.nanoTime() < end) {
         long transaction = ++count;
         one.journal.appendAddRecordTransactional(transaction, 2 * count, (byte) 1, body);
         one.journal.appendAddRecordTransactional(transaction, 2 * count + 1, (byte) 1, body);
         one.journal.appendCommitRecord(transaction, true);
      }
      return count;
   }

   /** Loads the table into lists in memory, which is the only way that this journal has. */
   static Map<String, Object> load(Settings settings) throws Exception {
      List<RecordInfo> records = new ArrayList<>();
      SqlJournal one = new SqlJournal(settings);
      try {
         one.journal.start();
         long begin = System.nanoTime();
         loaded(one, records);
         double seconds = (System.nanoTime() - begin) / 1e9;
         return Json.object("count", records.size(), "seconds", seconds, "per_s", records.size() / seconds);
      } finally {
         one.close();
      }
   }

   private static void loaded(SqlJournal one, List<RecordInfo> records) throws Exception {
      one.journal.load(records, new ArrayList<>(), (tx, added, deleted) -> {
         throw new IllegalStateException("transaction " + tx + " was left open");
      });
   }

   /** Gives a permit back for each record that is in the table. */
   private record Room(Semaphore permits) implements IOCompletion {
      @Override
      public void storeLineUp() {
      }

      @Override
      public void done() {
         permits.release();
      }

      @Override
      public void onError(int errorCode, String errorMessage) {
         throw new IllegalStateException(errorMessage);
      }
   }
}
