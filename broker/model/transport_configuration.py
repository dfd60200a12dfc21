"""How to reach a broker, as brokers tell it to clients and to each other."""

from __future__ import annotations

from dataclasses import dataclass
from dataclasses import field as dataclass_field
from typing import Final, TypeAlias

from broker.model.encoding import (
    BOOLEAN,
    INT,
    LONG,
    STR,
    BodyReader,
    BodyWriter,
    Codec,
    RecordFormatError,
)

TCP_CONNECTOR: Final = "org.apache.activemq.artemis.core.remoting.impl.netty.NettyConnectorFactory"
"""What every TCP connector is called on the wire."""

EXTRA_PREFIX: Final = "$.EP."
"""Before the names of parameters that are not those of a transport."""

ParameterValue: TypeAlias = bool | int | str

_INT_MAX: Final = 2**31 - 1
_BOOLEAN_TAG, _INT_TAG, _LONG_TAG, _STRING_TAG = range(4)
# An empty name, a tag and a boolean.
_PARAMETER_SIZE_MIN: Final = 6


@dataclass(frozen=True, slots=True)
class TransportConfiguration:
    """A connector: its name, the factory's class name, and parameters such as host and port."""

    name: str
    factory_class_name: str = TCP_CONNECTOR
    parameters: dict[str, ParameterValue] = dataclass_field(default_factory=dict)

    @property
    def host(self) -> str:
        """Where it listens."""
        return str(self.parameters.get("host", "localhost"))

    @property
    def port(self) -> int:
        """Its TCP port; on the wire it is text where it came from a URI.

        Raises:
            RecordFormatError: no number.
        """
        value = self.parameters.get("port", 61616)
        try:
            return int(value)
        except ValueError as error:
            raise RecordFormatError(f"port {value!r} of connector {self.name!r}") from error


def _read_value(reader: BodyReader) -> ParameterValue:
    tag = reader.read_byte()
    if tag == _BOOLEAN_TAG:
        return BOOLEAN.read(reader)
    if tag == _INT_TAG:
        return INT.read(reader)
    if tag == _LONG_TAG:
        return LONG.read(reader)
    if tag == _STRING_TAG:
        return STR.read(reader)
    raise reader.fail(f"transport parameter with the unknown tag {tag}")


def _read(reader: BodyReader) -> TransportConfiguration:
    name = STR.read(reader)
    factory = STR.read(reader)
    count = reader.read_count(item_size_min=_PARAMETER_SIZE_MIN)
    parameters = {STR.read(reader): _read_value(reader) for _ in range(count)}
    return TransportConfiguration(name, factory, parameters)


def _write(writer: BodyWriter, configuration: TransportConfiguration) -> None:
    STR.write(writer, configuration.name)
    STR.write(writer, configuration.factory_class_name)
    writer.write_int(len(configuration.parameters))
    for name, value in configuration.parameters.items():
        STR.write(writer, name)
        if isinstance(value, bool):
            writer.write_byte(_BOOLEAN_TAG)
            writer.write_boolean(value)
        elif isinstance(value, str):
            writer.write_byte(_STRING_TAG)
            STR.write(writer, value)
        elif -_INT_MAX <= value <= _INT_MAX:
            writer.write_byte(_INT_TAG)
            writer.write_int(value)
        else:
            writer.write_byte(_LONG_TAG)
            writer.write_long(value)


TRANSPORT: Final = Codec(_read, _write)


def _write_optional(writer: BodyWriter, value: TransportConfiguration | None) -> None:
    writer.write_boolean(value is not None)
    if value is not None:
        _write(writer, value)


OPTIONAL_TRANSPORT: Final[Codec[TransportConfiguration | None]] = Codec(
    lambda reader: reader.read_nullable(_read), _write_optional
)
