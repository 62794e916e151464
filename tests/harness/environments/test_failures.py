"""The error sentence for the output of each installer: the requirement, its line, and the installer's reason."""

import pytest

from determined.environments import Requirement
from determined.environments.failures import explain

REQUIREMENTS = [
    Requirement("numpy", "numpy==99", "requirements.txt", 3),
    Requirement("old-tool", "old_tool", "more.txt", 1),
]
NUMPY_LINE = 'requirements.txt:3: "numpy==99": '


@pytest.mark.parametrize(
    ("lines", "sentence"),
    [
        (
            ["Looking in indexes", "ERROR: No matching distribution found for numpy==99"],
            NUMPY_LINE + "No matching distribution found for numpy==99",
        ),
        (
            [
                "  × No solution found when resolving dependencies:",
                "  ╰─▶ Because there is no version of numpy==99 and you require",
                "      numpy==99, we can conclude that your requirements are unsatisfiable.",
            ],
            NUMPY_LINE
            + "Because there is no version of numpy==99 and you require numpy==99, we can conclude that your "
            "requirements are unsatisfiable.",
        ),
        (
            ["Collecting old_tool==1 (from -r more.txt)", "  ERROR: Failed building wheel: gcc is missing"],
            'more.txt:1: "old_tool": Failed building wheel: gcc is missing',
        ),
        (
            ["\x1b[31mERROR: Could not install packages due to an OSError: [Errno 28] No space left on device\x1b[0m"],
            "the disk is full: Could not install packages due to an OSError: [Errno 28] No space left on device",
        ),
        (
            [
                "WARNING: Retrying (Retry(total=4)) after connection broken by 'ReadTimeoutError(\"HTTPConnectionPool("
                "host='pypi.lab', port=8443): Read timed out. (read timeout=15)\")': /files/a.whl",
                "ERROR: No matching distribution found for numpy==99",
            ],
            "the package index did not answer: pypi.lab:8443: Read timed out",
        ),
        (["something else went wrong"], "something else went wrong"),
        ([], "the installer failed without a word"),
    ],
)
def test_explain_gives_one_sentence_for_the_output_of_an_installer(lines: list[str], sentence: str):
    assert explain(lines, REQUIREMENTS) == sentence
