"""The trigger's steps on a real PostgreSQL."""
