import experiments.tiny_ppo
