"""The web console: pages for the operator who looks rather than reads, and the JSON beneath them."""
