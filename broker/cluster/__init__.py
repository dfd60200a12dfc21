"""What a broker does as one of several: broadcast and discovery groups, the topology it tells."""
