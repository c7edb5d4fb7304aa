"""All flights that left New York in 2013, counted by the hour of their departure."""
