"""Why a message is not consumed: the state of its queue as values, and the reasons that follow."""
