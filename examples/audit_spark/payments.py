"""Orders with their payments within ten minutes; orders that nobody pays come out with NULL."""

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F


def job(spark: SparkSession, orders: DataFrame, payments: DataFrame) -> DataFrame:
    placed = orders.withWatermark("placed", "2 minutes")
    paid = payments.withWatermark("paid", "2 minutes")
    in_time = F.expr("id = order_id AND paid BETWEEN placed AND placed + INTERVAL 10 MINUTES")
    return placed.join(paid, in_time, "left_outer").select("id", "amount", "paid")
