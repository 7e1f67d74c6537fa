"""What `cdk deploy` makes: data that outlives everything, an engine that may be rebuilt, and a sandbox to try it."""
