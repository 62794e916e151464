"""The recorded facts about the official client equal those of the installed client."""

import json
import subprocess

import pytest
from tests.support.official_client import OFFICIAL
from tests.support.wire_shape import ENUMS

pytestmark = [pytest.mark.e2e, pytest.mark.official]
READ = """
import json, sys
from determined.common.api import bindings
names = json.load(sys.stdin)
print(json.dumps({name: [member.value for member in getattr(bindings, name)] for name in names}))
"""


def test_recorded_enums_are_those_of_the_client():
    python = str(OFFICIAL / "bin" / "python")
    done = subprocess.run(
        [python, "-c", READ], input=json.dumps(list(ENUMS)), capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == ENUMS
