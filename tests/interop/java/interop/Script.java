package interop;

import java.io.File;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.StandardOpenOption;
import java.util.Comparator;
import java.util.List;
import java.util.Locale;
import java.util.stream.Stream;

import org.apache.activemq.artemis.core.journal.impl.JournalImpl;
import org.apache.activemq.artemis.core.journal.EncoderPersister;
import org.apache.activemq.artemis.core.persistence.Persister;
import org.apache.activemq.artemis.api.core.ActiveMQBuffer;

/** Runs an ops script (tests/golden/README.md lists the words) on a folder with Artemis's journal. */
final class Script {
   private final Settings settings;
   private final Path directory;
   private OpenJournal journal;
   private String[] words;
   private boolean sync;

   Script(Settings settings) {
      this.settings = settings;
      this.directory = settings.directory().toPath();
   }

   /** Leaves the folder closed, whether or not the script stopped its journal. */
   void run(List<String> lines) throws Exception {
      Files.createDirectories(directory);
      try {
         for (String line : lines) {
            if (!line.isBlank() && !line.startsWith("#")) {
               step(line);
            }
         }
      } finally {
         close();
      }
   }

   private void step(String line) throws Exception {
      words = line.trim().split(" +");
      sync = words[words.length - 1].equals("sync");
      switch (words[0]) {
         case "open" -> open();
         case "stop" -> close();
         case "crash" -> crash();
         case "add" -> journal.appendAddRecord(number(1), userType(2), body(3), sync);
         case "upd" -> journal.appendUpdateRecord(number(1), userType(2), body(3), sync);
         case "tryupd" -> journal.tryAppendUpdateRecord(number(1), userType(2), body(3), (id, found) -> {
         }, sync, line.contains(" replaceable"));
         case "del" -> journal.appendDeleteRecord(number(1), sync);
         case "event" -> journal.appendAddEvent(number(1), userType(2), RawBytes.INSTANCE, body(3), sync, null);
         case "txadd" -> journal.appendAddRecordTransactional(number(1), number(2), userType(3), body(4));
         case "txupd" -> journal.appendUpdateRecordTransactional(number(1), number(2), userType(3), body(4));
         case "txdel" -> deleteInTransaction();
         case "prepare" -> journal.appendPrepareRecord(number(1), body(2), sync);
         case "commit" -> journal.appendCommitRecord(number(1), sync);
         case "rollback" -> journal.appendRollbackRecord(number(1), sync);
         case "next" -> journal.forceMoveNextFile();
         case "reclaim" -> reclaim();
         case "compact" -> compact();
         case "compact_snapshot" -> compactSnapshot();
         case "flush" -> journal.flush();
         case "poke" -> poke(words[1], number(2), body(3));
         case "truncate" -> truncate(words[1], number(2));
         case "writefile" -> Files.write(directory.resolve(words[1]), body(2));
         case "mv" -> Files.move(directory.resolve(words[1]), directory.resolve(words[2]));
         case "rm" -> Files.delete(directory.resolve(words[1]));
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

   private void deleteInTransaction() throws Exception {
      if (words.length > 3) {
         journal.appendDeleteRecordTransactional(number(1), number(2), body(3));
      } else {
         journal.appendDeleteRecordTransactional(number(1), number(2));
      }
   }

   private void open() throws Exception {
      journal = settings.journal();
      journal.start();
      Views.load(journal);
   }

   private void close() throws Exception {
      if (journal != null) {
         journal.stop();
         journal = null;
      }
   }

   private void reclaim() throws Exception {
      journal.flush();
      journal.checkReclaimStatus();
      journal.flush();
   }

   private void compact() throws Exception {
      journal.flush();
      journal.testCompact();
      journal.flush();
   }

   /** Leaves the folder as it was while the journal was open: what a killed process leaves behind. */
   private void crash() throws Exception {
      journal.flush();
      Path copy = copyAside();
      close();
      putBack(copy);
   }

   private void compactSnapshot() throws Exception {
      OpenJournal.CompactionPoint wanted = OpenJournal.CompactionPoint.valueOf(words[1].toUpperCase(Locale.ROOT));
      Path[] copy = new Path[1];
      journal.watchCompaction(point -> {
         if (point == wanted) {
            copy[0] = copyAside();
         }
      });
      compact();
      close();
      putBack(copy[0]);
   }

   private Path copyAside() throws IOException {
      Path copy = Files.createTempDirectory(directory.toAbsolutePath().getParent(), "aside-");
      try (Stream<Path> entries = Files.list(directory)) {
         for (Path file : (Iterable<Path>) entries.filter(Files::isRegularFile)::iterator) {
            Files.copy(file, copy.resolve(file.getFileName()), StandardCopyOption.COPY_ATTRIBUTES);
         }
      }
      return copy;
   }

   private void putBack(Path copy) throws IOException {
      try (Stream<Path> entries = Files.walk(directory)) {
         entries.sorted(Comparator.reverseOrder()).map(Path::toFile).forEach(File::delete);
      }
      Files.move(copy, directory);
   }

   private void poke(String name, long offset, byte[] bytes) throws IOException {
      try (FileChannel file = FileChannel.open(directory.resolve(name), StandardOpenOption.WRITE)) {
         file.write(ByteBuffer.wrap(bytes), offset);
      }
   }

   private void truncate(String name, long size) throws IOException {
      try (FileChannel file = FileChannel.open(directory.resolve(name), StandardOpenOption.WRITE)) {
         file.truncate(size);
      }
   }

   /** Encodes a byte array as itself; the journal's own event call takes no plain bytes. */
   private static final class RawBytes implements Persister<byte[]> {
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
      public byte[] decode(ActiveMQBuffer buffer, byte[] record, org.apache.activemq.artemis.core.persistence.CoreMessageObjectPools pools) {
         throw new UnsupportedOperationException("only written");
      }
   }
}
