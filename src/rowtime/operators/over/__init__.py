"""OVER: functions of the rows before each row."""
