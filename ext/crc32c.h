/* CRC-32C (Castagnoli), as iSCSI, ext4 and SSE4.2 compute it.
 *
 * Any thread, any time; no allocation. The fastest way that the processor offers is chosen once,
 * when the object is loaded. All ways give the same numbers. */
#ifndef QV_CRC32C_H
#define QV_CRC32C_H

#include <stddef.h>
#include <stdint.h>

/* The checksum of what crc stands for, followed by size bytes at data, of any alignment. Begin with
 * 0: qv_crc32c(0, "123456789", 9) == 0xe3069283, and qv_crc32c(qv_crc32c(0, a, n), b, m) is that of
 * a followed by b. */
uint32_t qv_crc32c(uint32_t crc, const void *data, size_t size);

/* "sse4.2+pclmul", "sse4.2", "armv8+pmull", "armv8" or "table": for reports. */
const char *qv_crc32c_way(void);

#endif
