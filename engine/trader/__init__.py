"""A trader's side: a typed client of the venue, and what commands do with it."""
