import experiments.tiny_ppo  # noqa: F401
