"""What command lines are made of: exit statuses, options, progress, where records are."""
