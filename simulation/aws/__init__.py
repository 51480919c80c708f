"""A simulated AWS account behind the real Pulumi engine: what `simulation/bin/pulumi-resource-aws` serves.

It knows what AWS answers: ids, ARNs, endpoints, unknown references, resources still in use, replacements, and
the requests that AWS refuses. It does not know capacity, quotas, permissions or prices: a stack that passes
here has the right shape; only a real account shows that AWS grants it.
"""
