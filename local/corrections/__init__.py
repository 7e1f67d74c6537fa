"""Where the emulator answers otherwise than AWS in a way that the product would notice, it is corrected in its process.

Each module corrects one thing and raises ``OutOfDate`` when the emulator is not the one it was written for.
"""
