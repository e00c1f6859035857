"""What stops trading when it must stop."""
