"""Readings counted in windows of five minutes, which wait two minutes for late ones."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def job(spark: SparkSession, readings: DataFrame) -> DataFrame:
    return (
        readings.withWatermark("at", "2 minutes")
        .groupBy(F.window("at", "5 minutes"), "sensor")
        .agg(F.count("*").alias("n"), F.max("celsius").alias("warmest"))
        .select("window.start", "window.end", "sensor", "n", "warmest")
    )
