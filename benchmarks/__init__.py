"""What a task costs and what a function weighs: counted from real calls, printed as tables."""
