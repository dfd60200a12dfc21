import java.io.PrintStream;
import java.net.URI;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.jar.JarFile;
import org.junit.runner.Description;
import org.junit.runner.JUnitCore;
import org.junit.runner.notification.Failure;
import org.junit.runner.notification.RunListener;
import org.objectweb.jtests.jms.framework.JMSTestCase;

/** Runs all tests of the suite; a line for each test: "ok CLASS.METHOD", or "failed CLASS.METHOD why". */
public class JoramSuite {

   private static final String PLACE = "org/objectweb/jtests/jms/conform/";

   public static void main(String[] arguments) throws Exception {
      PrintStream results = System.out;
      // The tests print, too.
      System.setOut(System.err);
      JUnitCore core = new JUnitCore();
      core.addListener(new Results(results));
      core.run(tests().toArray(new Class<?>[0]));
      results.println("end");
      results.flush();
      // What a test has left open keeps threads.
      System.exit(0);
   }

   private static List<Class<?>> tests() throws Exception {
      URI jar = JMSTestCase.class.getProtectionDomain().getCodeSource().getLocation().toURI();
      List<Class<?>> found = new ArrayList<>();
      try (JarFile file = new JarFile(jar.getPath())) {
         for (String name : file.stream().map(Object::toString).sorted().toList()) {
            if (name.startsWith(PLACE) && name.endsWith("Test.class")) {
               found.add(Class.forName(name.substring(0, name.length() - 6).replace('/', '.')));
            }
         }
      }
      return found;
   }

   private static final class Results extends RunListener {

      private final PrintStream out;
      private final Map<Description, Failure> failures = new HashMap<>();

      Results(PrintStream out) {
         this.out = out;
      }

      private static String name(Description description) {
         String type = description.getClassName();
         return type.substring(type.lastIndexOf('.') + 1) + "." + description.getMethodName();
      }

      @Override
      public void testFailure(Failure failure) {
         failures.put(failure.getDescription(), failure);
      }

      @Override
      public void testFinished(Description description) {
         Failure failure = failures.remove(description);
         if (failure == null) {
            out.println("ok " + name(description));
         } else {
            String why = String.valueOf(failure.getException());
            out.println("failed " + name(description) + " " + why.replace('\n', ' '));
         }
         out.flush();
      }
   }
}
