"""What a request must be before a page sees it, and what goes with every response; one subject a module."""
