"""What an existing job of Spark Structured Streaming loses, and how its result depends on the batches."""
