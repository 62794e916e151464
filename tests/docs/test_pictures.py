"""The pictures in git: exactly those that texts show and those of the main screens."""

import re
import subprocess
from pathlib import Path

from tests.support.kept_pictures import FOLDER, MAIN_SCREENS, ROOT, kept, shown

ROUTER = (ROOT / "webui" / "src" / "app" / "router.tsx").read_text(encoding="utf-8")


def test_git_holds_the_shown_pictures_and_those_of_the_main_screens_and_no_others() -> None:
    command = ["git", "ls-files", FOLDER]
    files = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines()
    assert {Path(name).name for name in files} == kept()
    assert len(shown()) >= 7


def test_each_route_of_the_page_has_a_main_screen() -> None:
    routes = re.findall(r'path: "/(\w*)[^"]*",\s*\.\.\.(?:loaders|lazyPage)', ROUTER)
    names = {"": "list", "experiments": "experiment-overview", "trials": "trial-curves", "compare": "compare-curves"}
    screens = {names.get(route, route) for route in routes}
    assert screens | {"sign-in"} == set(MAIN_SCREENS)
