"""The face for scripts and notebooks: cases evaluated by a function call, and what comes of it as an object."""
