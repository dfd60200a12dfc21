package interop;

import java.security.MessageDigest;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.Map;

/** Record bodies: the tokens of an ops script, and how expected.json shows a body. */
final class Bodies {
   private static final int HEX_SIZE_MAX = 256;
   private static final int HEAD_SIZE = 16;

   private Bodies() {
   }

   /** `-` is empty, `x1f2e` these bytes, `r7:100` a hundred bytes of a fixed sequence seeded with 7. */
   static byte[] parse(String token) {
      switch (token.charAt(0)) {
         case '-':
            return new byte[0];
         case 'x':
            return HexFormat.of().parseHex(token.substring(1));
         case 'r':
            String[] seedAndSize = token.substring(1).split(":");
            byte[] body = new byte[Integer.parseInt(seedAndSize[1])];
            int state = Integer.parseInt(seedAndSize[0]);
            for (int i = 0; i < body.length; i++) {
               state = (int) ((state * 1103515245L + 12345) & 0x7fffffff);
               body[i] = (byte) (state >> 16);
            }
            return body;
         default:
            throw new IllegalArgumentException("not a body: " + token);
      }
   }

   /** Adds `len` and either `hex` or, for long bodies, `sha256` and `head_hex`. */
   static Map<String, Object> describe(Map<String, Object> record, byte[] body) throws Exception {
      record.put("len", body.length);
      if (body.length <= HEX_SIZE_MAX) {
         record.put("hex", HexFormat.of().formatHex(body));
      } else {
         byte[] digest = MessageDigest.getInstance("SHA-256").digest(body);
         record.put("sha256", HexFormat.of().formatHex(digest));
         record.put("head_hex", HexFormat.of().formatHex(Arrays.copyOf(body, HEAD_SIZE)));
      }
      return record;
   }
}
