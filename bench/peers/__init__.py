"""What a user would pick instead, doing the same work, each in a process of its own environment."""
