import experiments.plot_ppo
import experiments.plot_sft
