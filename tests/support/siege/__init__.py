"""A siege of a venue: besiegers of a process of their own, and honest traders who are measured meanwhile."""
