"""What happens to orders, told to whoever follows it."""
