"""The recorded facts about the official client are those of the installed one."""

import json
import subprocess

import pytest
from tests.support.official_cluster import OFFICIAL
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
    read = subprocess.run(
        [python, "-c", READ], input=json.dumps(list(ENUMS)), capture_output=True, text=True, check=True
    )
    assert json.loads(read.stdout) == ENUMS
