"""Plain SQL for pages and jobs, one file each."""
