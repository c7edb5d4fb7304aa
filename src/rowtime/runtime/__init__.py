"""The data plane: session, sources, sinks, ticks and pipelines on Spark."""
