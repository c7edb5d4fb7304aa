"""What refuses rows, and what gives refused rows out again."""
