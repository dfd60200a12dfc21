from libc.stdint cimport int64_t


cpdef bytes received(int kind, int64_t channel_id, bytes message, int64_t consumer_id,
                     int delivery_count)
cpdef bytes null(int kind, int64_t channel_id, int64_t correlation_id)
