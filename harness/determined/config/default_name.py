"""Default names of experiments and commands."""

import random

_FIRST = (
    "amber bold brisk calm clear copper crisp eager early even fair fleet gentle golden grand happy humble "
    "keen kind late light lively lucky mellow merry mild neat noble plain prime proud quick quiet ready rosy "
    "sharp silver small smooth solid steady still sunny swift tidy true vivid warm wise young"
)
_SECOND = (
    "alpine autumn coastal desert eastern evening forest garden harbour highland island lunar marble meadow "
    "midnight morning mountain northern ocean orchard polar prairie river rural sandy southern spring stone "
    "summer tidal upland valley velvet western wild winter wooden"
)
_THIRD = (
    "badger beaver bison crane dolphin eagle falcon ferret finch fox gecko goose hare hawk heron ibex jackal "
    "kestrel lark lemur lynx magpie marten mole moose newt osprey otter owl panda pelican puffin quail raven "
    "robin salmon seal sparrow stork swan swift tapir thrush tiger trout turtle vole wolf wren"
)


def experiment_name(rng: random.Random) -> str:
    """Returns a name of three random words.

    >>> experiment_name(random.Random(7)) == experiment_name(random.Random(7))
    True
    """
    return f"Experiment ({random_words(rng)})"


def random_words(rng: random.Random) -> str:
    """Returns three random words with hyphens."""
    return f"{rng.choice(_FIRST.split())}-{rng.choice(_SECOND.split())}-{rng.choice(_THIRD.split())}"
