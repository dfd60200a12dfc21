"""Source and target of a JMS bridge by any JMS provider: its jars, its JNDI names, and JPype."""
