"""Gates, which refuse rows, and the streams of refused rows."""
