"""The parts of the stack, one ComponentResource a file, in the order of `__main__.py`.

Each takes a frozen args dataclass and exposes what later parts need. Children get `ResourceOptions(parent=self)`
and inherit their provider through it; the caller's options are never merged into them.
"""
