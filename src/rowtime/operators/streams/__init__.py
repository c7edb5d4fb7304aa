"""Where rows come from: streams of writers, tables, several streams as one; and their bounds."""
