"""What runs by itself: the claim loop, the leader, the scheduler and its jobs."""
