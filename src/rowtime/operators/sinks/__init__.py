"""Where rows leave a plan."""
