"""The console: local pages that show checkpoints of running, stopped and crashed pipelines, without Spark or Java."""
