"""Commands around the stack that ask AWS: what is left of it, stopping it, whether an account is ready for it.

They run beside the program, with the user's own credentials and boto3 (`pip install boto3`); of the project they import
the planner alone.
"""
