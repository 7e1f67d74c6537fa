"""What `cdk deploy` makes: the data that outlives everything, the engine that may be rebuilt, and a sandbox to try it on."""
