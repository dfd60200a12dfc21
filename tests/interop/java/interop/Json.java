package interop;

import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.Map;

/** Writes the few JSON values this program prints: maps, lists, strings, numbers, booleans and null. */
final class Json {
   private Json() {
   }

   /** A map that keeps the order of its keys, from alternating keys and values. */
   static Map<String, Object> object(Object... keysAndValues) {
      Map<String, Object> object = new LinkedHashMap<>();
      for (int i = 0; i < keysAndValues.length; i += 2) {
         object.put((String) keysAndValues[i], keysAndValues[i + 1]);
      }
      return object;
   }

   static String text(Object value) {
      StringBuilder out = new StringBuilder();
      write(out, value);
      return out.toString();
   }

   private static void write(StringBuilder out, Object value) {
      if (value instanceof Map<?, ?> object) {
         char separator = '{';
         for (Map.Entry<?, ?> entry : object.entrySet()) {
            out.append(separator);
            writeString(out, (String) entry.getKey());
            out.append(':');
            write(out, entry.getValue());
            separator = ',';
         }
         out.append(object.isEmpty() ? "{}" : "}");
      } else if (value instanceof Collection<?> list) {
         char separator = '[';
         for (Object item : list) {
            out.append(separator);
            write(out, item);
            separator = ',';
         }
         out.append(list.isEmpty() ? "[]" : "]");
      } else if (value == null || value instanceof Number || value instanceof Boolean) {
         out.append(value);
      } else {
         writeString(out, value.toString());
      }
   }

   private static void writeString(StringBuilder out, String text) {
      out.append('"');
      for (char c : text.toCharArray()) {
         if (c == '"' || c == '\\') {
            out.append('\\').append(c);
         } else if (c < 0x20) {
            out.append(String.format("\\u%04x", (int) c));
         } else {
            out.append(c);
         }
      }
      out.append('"');
   }
}
