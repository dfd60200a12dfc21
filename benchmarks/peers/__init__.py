"""The engines that the journal is measured against, each runnable by itself."""
