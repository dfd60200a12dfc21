"""What the commands do, as functions that return data: stat, verify, recover, transfer."""
