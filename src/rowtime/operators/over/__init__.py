"""OVER: functions over the rows before each row."""
