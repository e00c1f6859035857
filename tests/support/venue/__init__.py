"""Venues: in this process, as processes, without a socket; and the stories of their users."""
