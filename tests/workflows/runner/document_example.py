"""The example of runner's README: its parameters, and a stand-in for its programs."""

import os
from pathlib import Path

PARAMS = """\
---
template:
  train: >
    python train.py data-bin/{data}
      --seed 1
      --criterion label_smoothed_cross_entropy
      --arch transformer_iwslt_de_en_v2 --share-all-embeddings
      --optimizer adam --adam-betas '(0.9,0.98)' --clip-norm 0.0
      --dropout 0.3 --attention-dropout 0.1 --relu-dropout 0.1
      --lr-scheduler inverse_sqrt --warmup-init-lr 1e-07 --warmup-updates 8000
      --lr 0.0015 --min-lr 1e-09
      --label-smoothing 0.1 --weight-decay 0.0001
      --max-tokens 4096
      --save-dir {_output}
      --tensorboard-logdir {_output}
      --no-save-optimizer-state
      --update-freq 1 --log-format simple --log-interval 50
      --ddp-backend no_c10d
      --keep-last-epochs 5 --early-stop 5
      --norm-momentum {moment}
      --normalization {norm}

  avg: >
    python scripts/average_checkpoints.py --inputs {_output}
      --num-epoch-checkpoints 5 --output {_output}/averaged_model.pt

  test: >
    python generate.py data-bin/{data}
        --max-tokens 4096 --beam 5 --lenpen 1.0 --remove-bpe
        --path {_output}/averaged_model.pt --gen-subset test

default:
  data: iwslt14
  norm: batch
  moment: 0.1

resource: [ 0, 1, 2, 3 ]


---
norm: [ new, batch ]
moment: [ 0.1, 0.05 ]
"""
PYTHON = """\
#!/bin/bash
echo "$CUDA_VISIBLE_DEVICES: $*"
while [ $# -gt 0 ]; do
  case $1 in
    --save-dir) touch "$2/checkpoint51.pt" "$2/checkpoint52.pt";;
    --gen-subset) echo "BLEU4 = 27.5";;
    --output) case $2 in *Norm_new*0.1/*) exit 1;; *) touch "$2";; esac;;
  esac
  shift
done
"""


def write(folder: Path, *, fails: bool = True) -> dict[str, str]:
    """Writes ``params.yaml`` and the stand-in. Averaging fails for one task. Returns an environment that finds the
    stand-in."""
    programs = folder / "bin"
    programs.mkdir(exist_ok=True)
    (programs / "python").write_text(PYTHON if fails else PYTHON.replace("exit 1", 'touch "$2"'))
    (programs / "python").chmod(0o755)
    (folder / "params.yaml").write_text(PARAMS)
    return {**os.environ, "PATH": f"{programs}:/usr/local/bin:/usr/bin:/bin"}
