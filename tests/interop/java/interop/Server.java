package interop;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.List;
import java.util.Map;

/**
 * Artemis's journal behind a pipe: one request a line on standard input, one JSON object a line on standard output.
 *
 * A request is a command and `name=value` arguments, separated by tabs; `dir` is the journal folder, the other journal
 * settings are named as in expected.json. The answer is `{"result": ..., "warnings": [...]}` or `{"error": ...}`.
 *
 *   load          loads, reports, stops                      (changes the folder as Artemis's load does)
 *   raw           every record of every file                 (reads only)
 *   compact       loads, compacts, reports the load of the result
 *   run           runs the script in the file `script`
 *   append-after  loads, adds `count` synced records from id `first_id` on, stops
 *   sql-load      loads the journal table `table` of the database `url`, reports, stops
 *   sql-run       runs the script in the file `script` on such a table (see SqlJournal)
 *   node          does `action` with the node manager called `name` (see SqlNodes)
 *   sql-bench, sql-bench-load                                see SqlBench
 *   bench, bench-load, bench-compact, calibrate              see Bench
 */
final class Server {
   private Server() {
   }

   public static void main(String[] arguments) throws Exception {
      PrintStream out = new PrintStream(new java.io.FileOutputStream(java.io.FileDescriptor.out), false, StandardCharsets.UTF_8);
      System.setOut(System.err); // The protocol owns standard output.
      Warnings warnings = Warnings.install();
      BufferedReader in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
      for (String line = in.readLine(); line != null; line = in.readLine()) {
         warnings.take();
         Map<String, Object> answer;
         try {
            Object result = answer(line.split("\t"));
            answer = Json.object("result", result, "warnings", warnings.take());
         } catch (Exception e) {
            answer = Json.object("error", e.getClass().getName() + ": " + e.getMessage(), "warnings", warnings.take());
         }
         out.println(Json.text(answer));
         out.flush();
      }
   }

   private static Object answer(String[] words) throws Exception {
      Map<String, String> values = new HashMap<>();
      for (int i = 1; i < words.length; i++) {
         int equals = words[i].indexOf('=');
         values.put(words[i].substring(0, equals), words[i].substring(equals + 1));
      }
      Settings settings = new Settings(values);
      switch (words[0]) {
         case "load":
            return load(settings, journal -> {
            });
         case "compact":
            load(settings, journal -> {
               journal.testCompact();
               journal.flush();
            });
            return load(settings, journal -> {
            });
         case "append-after":
            return load(settings, journal -> append(journal, settings));
         case "raw":
            return Views.raw(settings);
         case "run":
            List<String> script = Files.readAllLines(Path.of(settings.text("script")));
            new Script(settings).run(script);
            return null;
         case "bench":
            return Bench.append(settings);
         case "bench-load":
            return Bench.load(settings);
         case "bench-compact":
            return Bench.compact(settings);
         case "sql-load":
            return SqlJournal.load(settings);
         case "sql-run":
            return SqlJournal.run(settings);
         case "sql-bench":
            return SqlBench.append(settings);
         case "sql-bench-load":
            return SqlBench.load(settings);
         case "node":
            return SqlNodes.act(settings);
         case "calibrate":
            return Bench.calibrate(settings);
         default:
            throw new IllegalArgumentException("unknown command " + words[0]);
      }
   }

   /** What is done with a journal between load and stop. */
   private interface Use {
      void with(OpenJournal journal) throws Exception;
   }

   private static Map<String, Object> load(Settings settings, Use use) throws Exception {
      OpenJournal journal = settings.journal();
      journal.start();
      try {
         Map<String, Object> view = Views.load(journal);
         view.put("state_after_load", Views.state(journal));
         use.with(journal);
         return view;
      } finally {
         journal.stop();
      }
   }

   private static void append(OpenJournal journal, Settings settings) throws Exception {
      long firstId = Long.parseLong(settings.text("first_id"));
      long count = settings.number("count", 1);
      byte[] body = Bodies.parse(settings.text("body", "x0102"));
      for (long id = firstId; id < firstId + count; id++) {
         journal.appendAddRecord(id, (byte) settings.number("user_type", 1), body, true);
      }
   }
}
