"""What the broker refuses, by Artemis's codes.

    BrokerError(code, text)      answered to the client; the connection and the broker go on

One class and a code instead of a tree: who acts on an error is a client on the other side of a
protocol, and what crosses the wire is the code. A protocol without codes takes `code.name`.

Texts begin with Artemis's message id where it has one (`AMQ229017: …`), since clients and
their tests look at those.
"""

from __future__ import annotations

from enum import IntEnum

__all__ = ["BrokerError", "ErrorCode", "broker_error"]


class ErrorCode(IntEnum):
    """Why a request failed (ActiveMQExceptionType)."""

    INTERNAL_ERROR = 0
    UNSUPPORTED_PACKET = 1
    NOT_CONNECTED = 2
    CONNECTION_TIMEDOUT = 3
    DISCONNECTED = 4
    UNBLOCKED = 5
    IO_ERROR = 6
    QUEUE_DOES_NOT_EXIST = 100
    QUEUE_EXISTS = 101
    OBJECT_CLOSED = 102
    INVALID_FILTER_EXPRESSION = 103
    ILLEGAL_STATE = 104
    SECURITY_EXCEPTION = 105
    ADDRESS_DOES_NOT_EXIST = 106
    ADDRESS_EXISTS = 107
    INCOMPATIBLE_CLIENT_SERVER_VERSIONS = 108
    LARGE_MESSAGE_ERROR_BODY = 110
    TRANSACTION_ROLLED_BACK = 111
    SESSION_CREATION_REJECTED = 112
    DUPLICATE_ID_REJECTED = 113
    DUPLICATE_METADATA = 114
    TRANSACTION_OUTCOME_UNKNOWN = 115
    ALREADY_REPLICATING = 116
    INTERCEPTOR_REJECTED_PACKET = 117
    INVALID_TRANSIENT_QUEUE_USE = 118
    REMOTE_DISCONNECT = 119
    TRANSACTION_TIMEOUT = 120
    NATIVE_ERROR_INTERNAL = 200
    NATIVE_ERROR_INVALID_BUFFER = 201
    NATIVE_ERROR_NOT_ALIGNED = 202
    NATIVE_ERROR_CANT_INITIALIZE_AIO = 203
    NATIVE_ERROR_CANT_RELEASE_AIO = 204
    NATIVE_ERROR_CANT_OPEN_CLOSE_FILE = 205
    NATIVE_ERROR_CANT_ALLOCATE_QUEUE = 206
    NATIVE_ERROR_PREALLOCATE_FILE = 208
    NATIVE_ERROR_ALLOCATE_MEMORY = 209
    ADDRESS_FULL = 210
    LARGE_MESSAGE_INTERRUPTED = 211
    CLUSTER_SECURITY_EXCEPTION = 212
    NOT_IMPLEMENTED = 213
    MAX_CONSUMER_LIMIT_EXCEEDED = 214
    UNEXPECTED_ROUTING_TYPE_FOR_ADDRESS = 215
    INVALID_QUEUE_CONFIGURATION = 216
    DELETE_ADDRESS_ERROR = 217
    NULL_REF = 218
    SHUTDOWN_ERROR = 219
    REPLICATION_TIMEOUT_ERROR = 220
    DIVERT_DOES_NOT_EXIST = 221
    ROUTING_EXCEPTION = 222
    TIMEOUT_EXCEPTION = 223
    GENERIC_EXCEPTION = 999

    @classmethod
    def _missing_(cls, value: object) -> ErrorCode:
        """A number of a version to come is a generic error, as Artemis reads it."""
        return cls.GENERIC_EXCEPTION


class BrokerError(Exception):
    """A request that the broker refuses; what it asked for did not happen.

    Attributes:
        code: for the client.
        text: for people; begins with Artemis's message id where there is one.
    """

    def __init__(self, code: ErrorCode, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


# Message ids of Artemis (ActiveMQMessageBundle) that clients or their tests look at.
_MESSAGE_IDS = {
    "connection_timed_out": (229014, ErrorCode.CONNECTION_TIMEDOUT),
    "no_such_queue": (229017, ErrorCode.QUEUE_DOES_NOT_EXIST),
    "queue_exists": (229019, ErrorCode.QUEUE_EXISTS),
    "invalid_filter": (229020, ErrorCode.INVALID_FILTER_EXPRESSION),
    "queue_has_consumers": (229025, ErrorCode.ILLEGAL_STATE),
    "no_reference": (229027, ErrorCode.ILLEGAL_STATE),
    "no_such_consumer": (229028, ErrorCode.ILLEGAL_STATE),
    "large_message_not_initialised": (229030, ErrorCode.ILLEGAL_STATE),
    "unable_to_validate_user": (229031, ErrorCode.SECURITY_EXCEPTION),
    "no_permission": (229032, ErrorCode.SECURITY_EXCEPTION),
    "incompatible_version": (229033, ErrorCode.INCOMPATIBLE_CLIENT_SERVER_VERSIONS),
    "server_not_started": (229034, ErrorCode.SESSION_CREATION_REJECTED),
    "duplicate_metadata": (229035, ErrorCode.DUPLICATE_METADATA),
    "address_is_full": (229102, ErrorCode.ADDRESS_FULL),
    "max_consumers": (229200, ErrorCode.MAX_CONSUMER_LIMIT_EXCEEDED),
    "no_such_address": (229203, ErrorCode.ADDRESS_DOES_NOT_EXIST),
    "address_exists": (229204, ErrorCode.ADDRESS_EXISTS),
    "address_has_bindings": (229205, ErrorCode.DELETE_ADDRESS_ERROR),
    "unexpected_routing_type": (229206, ErrorCode.UNEXPECTED_ROUTING_TYPE_FOR_ADDRESS),
    "shared_queue_address": (229082, ErrorCode.INVALID_TRANSIENT_QUEUE_USE),
    "shared_queue_filter": (229083, ErrorCode.INVALID_TRANSIENT_QUEUE_USE),
    # Thrown as IllegalArgumentException there: what reaches the client is code 0.
    "routing_type_not_supported": (229207, ErrorCode.INTERNAL_ERROR),
    "invalid_queue_name": (229216, ErrorCode.ILLEGAL_STATE),
    "redirected": (229237, ErrorCode.ROUTING_EXCEPTION),
    "router_not_ready": (229238, ErrorCode.ROUTING_EXCEPTION),
    "router_rejected": (229240, ErrorCode.REMOTE_DISCONNECT),
    "duplicate_id": (222059, ErrorCode.DUPLICATE_ID_REJECTED),
}


def broker_error(kind: str, text: str) -> BrokerError:
    """Give the error of one of the kinds that Artemis has a message id for.

    >>> broker_error("no_such_queue", "queue q does not exist").text
    'AMQ229017: queue q does not exist'
    """
    number, code = _MESSAGE_IDS[kind]
    return BrokerError(code, f"AMQ{number}: {text}")
