"""What other systems answer, beside what rowtime answers: their own test suites, and random pipelines."""
