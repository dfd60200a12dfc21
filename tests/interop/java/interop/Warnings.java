package interop;

import java.util.ArrayList;
import java.util.List;
import java.util.logging.Handler;
import java.util.logging.Level;
import java.util.logging.LogManager;
import java.util.logging.LogRecord;
import java.util.logging.Logger;

/** Collects what Artemis logs at WARN and above, in the words of expected.json (`WARN AMQ142015: ...`). */
final class Warnings extends Handler {
   private final List<String> lines = new ArrayList<>();

   static Warnings install() {
      LogManager.getLogManager().reset();
      Warnings warnings = new Warnings();
      Logger root = Logger.getLogger("");
      root.addHandler(warnings);
      root.setLevel(Level.WARNING);
      return warnings;
   }

   synchronized List<String> take() {
      List<String> taken = new ArrayList<>(lines);
      lines.clear();
      return taken;
   }

   @Override
   public synchronized void publish(LogRecord record) {
      if (record.getLevel().intValue() >= Level.WARNING.intValue()) {
         String level = record.getLevel() == Level.SEVERE ? "ERROR" : "WARN";
         lines.add(level + " " + record.getMessage());
      }
   }

   @Override
   public void flush() {
   }

   @Override
   public void close() {
   }
}
