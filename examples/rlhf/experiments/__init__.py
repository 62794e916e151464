from experiments import ppo, reward, warmup
