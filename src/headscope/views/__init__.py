"""Views: any of it made drawable, as plain data."""
