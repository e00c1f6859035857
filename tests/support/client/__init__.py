"""A trader's side: shells and scripted venues."""
