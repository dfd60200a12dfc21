import pytest

from broker.client.selectors import translate_selector


@pytest.mark.parametrize(
    ("jms", "expected"),
    [
        ("JMSPriority=1", "AMQPriority=1"),
        ("myJMSPriority=1 AND JMSPriority2=2", "myJMSPriority=1 AND JMSPriority2=2"),
        ("x = 'JMSPriority'", "x = 'JMSPriority'"),
        (
            "x = 'it''s JMSPriority' AND JMSPriority > 1",
            "x = 'it''s JMSPriority' AND AMQPriority > 1",
        ),
        ("JMSDeliveryMode='PERSISTENT'", "AMQDurable='DURABLE'"),
        ("JMSDeliveryMode='NON_PERSISTENT'", "AMQDurable='NON_DURABLE'"),
        ("JMSDeliveryMode='non PERSISTENT'", "AMQDurable='non PERSISTENT'"),
        ("JMSMessageID='ID:1'", "AMQUserID='ID:1'"),
        ("JMSTimestamp>JMSExpiration", "AMQTimestamp>AMQExpiration"),
        ("JMSXGroupID IS NULL", "AMQGroupID IS NULL"),
        ("JMSCorrelationID='a' OR JMSType='b'", "JMSCorrelationID='a' OR JMSType='b'"),
        ("größe_JMSPriority > 1", "größe_JMSPriority > 1"),
        ("x = 'not ended JMSPriority", "x = 'not ended AMQPriority"),
        ("", ""),
    ],
)
def test_names_are_replaced_whole_and_outside_of_quotes(jms, expected):
    assert translate_selector(jms) == expected
