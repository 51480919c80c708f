"""What AWS itself refuses beyond the provider's schema: one named function a rule, for the tables of
`resources`.

Each raises AwsError with the service's own code and, as far as it is known, its own words.
"""
