"""What the use cases need from the outside world, each with a fake and a real adapter under one contract suite."""
