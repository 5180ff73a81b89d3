"""The web app over a project's runs, agents and datasets: local, one process, nothing loaded from elsewhere."""
