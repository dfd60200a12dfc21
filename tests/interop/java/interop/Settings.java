package interop;

import java.io.File;
import java.util.Map;

import org.apache.activemq.artemis.core.io.SequentialFileFactory;
import org.apache.activemq.artemis.core.io.aio.AIOSequentialFileFactory;
import org.apache.activemq.artemis.core.io.mapped.MappedSequentialFileFactory;
import org.apache.activemq.artemis.core.io.nio.NIOSequentialFileFactory;

/** One request's settings: what `config` of a golden folder's expected.json names, and a command's own arguments. */
final class Settings {
   private final Map<String, String> values;

   Settings(Map<String, String> values) {
      this.values = values;
   }

   String text(String name, String otherwise) {
      return values.getOrDefault(name, otherwise);
   }

   String text(String name) {
      String value = values.get(name);
      if (value == null) {
         throw new IllegalArgumentException("missing argument " + name);
      }
      return value;
   }

   long number(String name, long otherwise) {
      String value = values.get(name);
      return value == null ? otherwise : Long.parseLong(value);
   }

   boolean flag(String name, boolean otherwise) {
      String value = values.get(name);
      return value == null ? otherwise : Boolean.parseBoolean(value);
   }

   File directory() {
      return new File(text("dir"));
   }

   int fileSize() {
      return (int) number("file_size", 102400);
   }

   int maxIo() {
      return (int) number("max_io", 1);
   }

   /** The configured I/O; a buffer timeout of 0 means no timed buffer where Artemis allows that. */
   SequentialFileFactory files() {
      String type = text("type", "NIO");
      int bufferSize = (int) number("buffer_size", 501760);
      int timeout = (int) number("buffer_timeout_ns", 0);
      SequentialFileFactory files;
      switch (type) {
         case "NIO":
            files = new NIOSequentialFileFactory(directory(), timeout > 0, bufferSize, timeout, maxIo(), false);
            break;
         case "ASYNCIO":
            if (!AIOSequentialFileFactory.isSupported(directory())) {
               throw new IllegalStateException("ASYNCIO cannot be used in " + directory());
            }
            files = new AIOSequentialFileFactory(directory(), bufferSize, timeout, maxIo(), false);
            break;
         case "MAPPED":
            files = new MappedSequentialFileFactory(directory(), fileSize(), timeout > 0, bufferSize, timeout, null);
            break;
         default:
            throw new IllegalArgumentException("unknown journal type " + type);
      }
      files.setDatasync(flag("datasync", true));
      if (values.containsKey("block_size")) {
         files.setAlignment((int) number("block_size", 512));
      }
      return files;
   }

   /** A journal of these settings, neither started nor loaded. */
   OpenJournal journal() {
      return new OpenJournal(this, files());
   }
}
