"""What a project begins with: first cases, a configuration, CI; from templates beside this file."""
