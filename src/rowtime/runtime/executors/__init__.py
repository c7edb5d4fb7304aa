"""Where the operators of a tick step: in the driver's process, or in a task of Spark."""
