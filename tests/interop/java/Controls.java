import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.TreeSet;
import java.util.stream.Collectors;

/**
 * Prints the attributes and operations of Artemis's control interfaces as a table.
 *
 * <p>Columns, divided by tabs: control, kind (attribute or operation), return type, name, parameter
 * types divided by commas ("-" for none). tests/broker/management/artemis_controls.tsv is made so:
 *
 * <pre>
 * base=https://repo.maven.apache.org/maven2/org/apache/activemq
 * for name in core-client commons; do
 *   curl -sSfO $base/artemis-$name/2.44.0/artemis-$name-2.44.0.jar
 * done
 * java -cp 'artemis-core-client-2.44.0.jar:artemis-commons-2.44.0.jar' Controls.java \\
 *   ActiveMQServerControl AddressControl QueueControl AcceptorControl DivertControl \\
 *   BroadcastGroupControl
 * </pre>
 */
public final class Controls {
  private static final String PACKAGE = "org.apache.activemq.artemis.api.core.management.";

  private Controls() {}

  public static void main(String[] names) throws Exception {
    for (String name : names) {
      Class<?> control = Class.forName(PACKAGE + name);
      TreeSet<String> rows = new TreeSet<>();
      for (Method method : control.getMethods()) {
        List<String> types =
            Arrays.stream(method.getParameterTypes())
                .map(Class::getSimpleName)
                .collect(Collectors.toCollection(ArrayList::new));
        rows.add(
            String.join(
                "\t",
                name,
                isAttribute(method) ? "attribute" : "operation",
                method.getReturnType().getSimpleName(),
                method.getName(),
                types.isEmpty() ? "-" : String.join(",", types)));
      }
      rows.forEach(System.out::println);
    }
  }

  /** As org.apache.activemq.artemis.core.management.impl.MBeanInfoHelper tells them apart. */
  private static boolean isAttribute(Method method) throws Exception {
    boolean isOperation =
        Arrays.stream(method.getAnnotations())
            .anyMatch(one -> one.annotationType().getName().equals(PACKAGE + "Operation"));
    if (isOperation) {
      return false;
    }
    String name = method.getName();
    boolean isVoid = method.getReturnType() == void.class;
    int count = method.getParameterCount();
    return !isVoid && count == 0 && (name.startsWith("get") || name.startsWith("is"))
        || isVoid && count == 1 && name.startsWith("set");
  }
}
