package interop;

import java.util.List;

import org.apache.activemq.artemis.api.core.Pair;
import org.apache.activemq.artemis.core.io.SequentialFile;
import org.apache.activemq.artemis.core.io.SequentialFileFactory;
import org.apache.activemq.artemis.core.journal.impl.JournalFile;
import org.apache.activemq.artemis.core.journal.impl.JournalImpl;

/** Artemis's journal, with a hook at three points of a compaction. */
final class OpenJournal extends JournalImpl {
   /** Told when a compaction has passed a point. */
   interface CompactionWatch {
      void passed(CompactionPoint point) throws Exception;
   }

   /** Output written; control file written as well; old files freed and new ones renamed, control file still there. */
   enum CompactionPoint { CMP, CONTROL, RENAMED }

   private CompactionWatch watch = point -> {
   };

   OpenJournal(Settings settings, SequentialFileFactory files) {
      super(settings.fileSize(),
            (int) settings.number("min_files", 2),
            (int) settings.number("pool_files", -1),
            (int) settings.number("compact_min_files", 0),
            (int) settings.number("compact_percentage", 0),
            files,
            settings.text("prefix", "activemq-data"),
            settings.text("extension", "amq"),
            settings.maxIo(),
            (int) settings.number("user_version", 0));
      for (String type : settings.text("replaceable", "").split(",")) {
         if (!type.isEmpty()) {
            replaceableRecord(Byte.parseByte(type));
         }
      }
   }

   void watchCompaction(CompactionWatch newWatch) {
      watch = newWatch;
   }

   @Override
   protected SequentialFile createControlFile(List<JournalFile> files,
                                              List<JournalFile> newFiles,
                                              Pair<String, String> cleanupRename) throws Exception {
      watch.passed(CompactionPoint.CMP);
      SequentialFile control = super.createControlFile(files, newFiles, cleanupRename);
      watch.passed(CompactionPoint.CONTROL);
      return control;
   }

   @Override
   protected void renameFiles(List<JournalFile> oldFiles, List<JournalFile> newFiles) throws Exception {
      super.renameFiles(oldFiles, newFiles);
      watch.passed(CompactionPoint.RENAMED);
   }
}
