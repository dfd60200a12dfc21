"""The Core protocol: frames, packets, versions; bytes in, objects out, and back."""
