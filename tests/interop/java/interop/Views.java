package interop;

import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.atomic.AtomicReference;

import org.apache.activemq.artemis.core.io.SequentialFileFactory;
import org.apache.activemq.artemis.core.journal.Journal;
import org.apache.activemq.artemis.core.journal.JournalLoadInformation;
import org.apache.activemq.artemis.core.journal.PreparedTransactionInfo;
import org.apache.activemq.artemis.core.journal.RecordInfo;
import org.apache.activemq.artemis.core.journal.impl.JournalFile;
import org.apache.activemq.artemis.core.journal.impl.JournalImpl;
import org.apache.activemq.artemis.core.journal.impl.JournalReaderCallback;

/** The two views of a journal folder: what load makes of it, and which records each file holds. */
final class Views {
   private Views() {
   }

   /** Loads `journal` (started, not loaded) and leaves it loaded: `load` of expected.json. */
   static Map<String, Object> load(Journal journal) throws Exception {
      List<RecordInfo> committed = new ArrayList<>();
      List<PreparedTransactionInfo> prepared = new ArrayList<>();
      List<Object> failed = new ArrayList<>();
      JournalLoadInformation information = journal.load(committed, prepared, (tx, records, deletes) -> {
         List<Object> deletedIds = new ArrayList<>();
         for (RecordInfo delete : deletes) {
            deletedIds.add(delete.id);
         }
         failed.add(Json.object("tx", tx, "records", records(records), "deletes", deletedIds));
      });
      List<Object> transactions = new ArrayList<>();
      for (PreparedTransactionInfo tx : prepared) {
         List<Object> deletes = new ArrayList<>();
         for (RecordInfo delete : tx.getRecordsToDelete()) {
            deletes.add(body(Json.object("id", delete.id), delete.data));
         }
         transactions.add(Json.object("tx", tx.getId(),
                                      "extra_data", body(Json.object(), tx.getExtraData()),
                                      "records", records(tx.getRecords()),
                                      "records_to_delete", deletes));
      }
      return Json.object("number_of_records", information.getNumberOfRecords(),
                         "max_id", information.getMaxID(),
                         "committed", records(committed),
                         "prepared", transactions,
                         "failed_transactions", failed);
   }

   /** Where a loaded journal stands; the same keys as `state_after_load` without the counter that has no getter. */
   static Map<String, Object> state(OpenJournal journal) throws Exception {
      journal.debugWait();
      JournalFile current = journal.getCurrentFile();
      return Json.object("data_files", journal.getDataFilesCount(),
                         "free_files", journal.getFreeFilesCount(),
                         "opened_files", journal.getOpenedFilesCount(),
                         "current_file", current.getFile().getFileName(),
                         "current_file_id", current.getFileID(),
                         "current_file_position", current.getFile().position());
   }

   private static List<Object> records(List<RecordInfo> records) {
      List<Object> described = new ArrayList<>();
      for (RecordInfo record : records) {
         described.add(body(Json.object("id", record.id,
                                        "user_type", record.userRecordType,
                                        "update", record.isUpdate,
                                        "compact_count", record.compactCount), record.data));
      }
      return described;
   }

   private static Map<String, Object> body(Map<String, Object> record, byte[] body) {
      try {
         return Bodies.describe(record, body);
      } catch (Exception e) {
         throw new IllegalStateException(e);
      }
   }

   /** Every record of every journal file, files in order of their ids: `raw.files` of expected.json. */
   static List<Object> raw(Settings settings) throws Exception {
      SequentialFileFactory files = settings.files();
      files.start();
      try {
         return raw(new OpenJournal(settings, files), files);
      } finally {
         files.stop();
      }
   }

   private static List<Object> raw(OpenJournal journal, SequentialFileFactory files) throws Exception {
      List<Object> described = new ArrayList<>();
      for (JournalFile file : journal.orderFiles()) {
         FileView view = new FileView(file.getJournalVersion());
         int lastDataPosition = JournalImpl.readJournalFile(files, file, view, view.buffer);
         described.add(Json.object("file", file.getFile().getFileName(),
                                   "file_id", file.getFileID(),
                                   "record_id", file.getRecordID(),
                                   "version", file.getJournalVersion(),
                                   "last_data_pos", lastDataPosition,
                                   "marked_as_data_file_by_corruption", view.marks,
                                   "records", view.records));
      }
      return described;
   }

   /** Describes the records of one file as Artemis's scanner comes by them. */
   private static final class FileView implements JournalReaderCallback {
      private static final int CHECK_SIZE = 4;

      final AtomicReference<ByteBuffer> buffer = new AtomicReference<>();
      final List<Object> records = new ArrayList<>();
      int marks;
      private final int headSize;

      FileView(int version) {
         headSize = version >= 2 ? 0 : -1;
      }

      /** The scanner calls with its position just before the record's last four bytes. */
      private Map<String, Object> start(String kind, int size) {
         int end = buffer.get().position() + CHECK_SIZE;
         return Json.object("kind", kind, "offset", end - size - headSize, "size", size + headSize);
      }

      private void addBody(String kind, Long tx, RecordInfo record, int fixedSize, boolean hasUserType) {
         Map<String, Object> described = start(kind, fixedSize + record.data.length);
         if (tx != null) {
            described.put("tx", tx);
         }
         described.put("id", record.id);
         if (hasUserType) {
            described.put("user_type", record.userRecordType);
         }
         described.put("compact_count", record.compactCount);
         records.add(body(described, record.data));
      }

      @Override
      public void onReadEventRecord(RecordInfo record) {
         addBody("event", null, record, 23, true);
      }

      @Override
      public void onReadAddRecord(RecordInfo record) {
         addBody("add", null, record, 23, true);
      }

      @Override
      public void onReadUpdateRecord(RecordInfo record) {
         addBody("update", null, record, 23, true);
      }

      @Override
      public void onReadDeleteRecord(long id) {
         Map<String, Object> described = start("delete", 18);
         described.put("id", id);
         records.add(described);
      }

      @Override
      public void onReadAddRecordTX(long tx, RecordInfo record) {
         addBody("add_tx", tx, record, 31, true);
      }

      @Override
      public void onReadUpdateRecordTX(long tx, RecordInfo record) {
         addBody("update_tx", tx, record, 31, true);
      }

      @Override
      public void onReadDeleteRecordTX(long tx, RecordInfo record) {
         addBody("delete_tx", tx, record, 30, false);
      }

      @Override
      public void onReadPrepareRecord(long tx, byte[] extraData, int numberOfRecords) {
         Map<String, Object> described = start("prepare", 26 + extraData.length);
         described.put("tx", tx);
         described.put("number_of_records", numberOfRecords);
         records.add(body(described, extraData));
      }

      @Override
      public void onReadCommitRecord(long tx, int numberOfRecords) {
         Map<String, Object> described = start("commit", 22);
         described.put("tx", tx);
         described.put("number_of_records", numberOfRecords);
         records.add(described);
      }

      @Override
      public void onReadRollbackRecord(long tx) {
         Map<String, Object> described = start("rollback", 18);
         described.put("tx", tx);
         records.add(described);
      }

      @Override
      public void markAsDataFile(JournalFile file) {
         marks++;
      }
   }
}
