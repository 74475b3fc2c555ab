"""What is true of a model: functions of space, rewards and transitions, never seen by a learner."""
