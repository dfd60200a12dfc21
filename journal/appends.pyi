from typing_extensions import disjoint_base

from journal.lifecycle import JournalLifecycle

@disjoint_base
class JournalAppends(JournalLifecycle): ...
