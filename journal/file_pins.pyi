# All else is for cimport (file_pins.pxd).
from typing_extensions import disjoint_base

@disjoint_base
class FilePins: ...
