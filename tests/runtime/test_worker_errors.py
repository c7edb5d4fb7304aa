"""Which error of a user's function a message of Spark reports."""

from __future__ import annotations

import pytest

from rowtime.core.worker_errors import raised_by_function

SPARK = '  File "/x/site-packages/pyspark/sql/worker.py", line 9, in process\n    return f(x)\n'
ZIPPED = '  File "/x/pyspark.zip/pyspark/worker.py", line 9, in process\n'
OURS = '  File "/x/site-packages/rowtime/{}.py", line 7, in {}\n    return value\n           ^^^^^\n'
USERS = '  File "/home/me/prices.py", line 3, in cost\n    return 1 / v\n           ~~^~~\n'
BEGINS = "Traceback (most recent call last):\n"
AT = "cost, line 3 of /home/me/prices.py"


AGAIN = "\nDuring handling of the above exception, another exception occurred:\n\n"
JAVA = f"\nJVM stacktrace:\norg.x.PythonException: {BEGINS}{SPARK}IOError: x\n"
IMPORTED, CALLED = OURS.format("core/imported", "__call__"), OURS.format("api/python_functions", "called")
LATER = USERS.replace("line 3", "line 5")
WRITING = OURS.format("runtime/segment_writer", "write") + USERS.replace("home/me", "x/pyarrow")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"An error.\n{BEGINS}{SPARK}{USERS}ZeroDivisionError: by zero\n", f"ZeroDivisionError: by zero ({AT})"),
        (f"org.x.PythonException: {BEGINS}{ZIPPED}{USERS}prices.Odd\n\tat org.x.Y\n", f"prices.Odd ({AT})"),
        (f"{BEGINS}{SPARK}{IMPORTED}{USERS}ValueError: no\n", f"ValueError: no ({AT})"),
        (f"{BEGINS}{SPARK}{CALLED}TypeError: no\n", "TypeError: no"),
        (f"{BEGINS}{SPARK}TypeError: it takes no text\n", "TypeError: it takes no text"),
        (
            f"{BEGINS}{SPARK}{USERS}KeyError: 1\n{AGAIN}{BEGINS}{SPARK}{LATER}ValueError: one\ntwo\n",
            "ValueError: one (cost, line 5 of /home/me/prices.py)",
        ),
        (f"{BEGINS}{SPARK}{USERS}ValueError: no\n{JAVA}", f"ValueError: no ({AT})"),
    ],
)
def test_the_error_of_a_function_is_read_with_its_place(text: str, shown: str) -> None:
    assert str(raised_by_function(text)) == shown


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Job aborted: [DIVIDE_BY_ZERO] Division by zero. SQLSTATE: 22012",
        BEGINS,
        f"{BEGINS}{SPARK}{WRITING}OSError: disk\n",
    ],
)
def test_other_errors_are_not_those_of_a_function(text: str) -> None:
    assert raised_by_function(text) is None
