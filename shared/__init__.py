"""What both processes and the author of a job import."""
