"""Settings of Sphinx: ``make docs`` builds the site."""

import sys
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE))

from generate import pages  # noqa: E402  # the path is set above

from determined_launch.version import DETENT_VERSION  # noqa: E402

project = "Detent"
copyright = "the Detent authors"
version = release = DETENT_VERSION
extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx.ext.doctest",
    "sphinx_copybutton",
    "generate.accessibility",
]
exclude_patterns = ["_build", "generate"]
html_theme = "furo"
html_title = f"Detent {DETENT_VERSION}"
html_favicon = "../webui/public/mark.svg"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {"navigation_with_keys": True}
# The site is served without a network: nothing may be loaded from outside.
html_use_opensearch = ""
myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3
autodoc_member_order = "bysource"
autodoc_typehints = "description"
autodoc_mock_imports = ["transformers", "pytorch_lightning"]
copybutton_prompt_text = "$ "
linkcheck_ignore = [r"http://(127\.0\.0\.1|localhost).*"]
nitpicky = False

pages.write(HERE / "reference")
