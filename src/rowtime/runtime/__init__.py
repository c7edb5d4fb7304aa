"""The data plane: a session, sources, sinks, ticks and pipelines on Spark."""
