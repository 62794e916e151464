"""Texts that would act if the page interpreted them."""

RUN = "window.__ran=(window.__ran||0)+1"
ELSEWHERE = "https://evil.example"

PAYLOADS = (
    f"<script>{RUN}</script>",
    f'<img src=x onerror="{RUN}">',
    f"<svg onload={RUN}>",
    f"javascript:{RUN}",
    f"\"><iframe srcdoc='<script>parent.{RUN}</script>'>",
    f"'-({RUN})-'",
    f'" onmouseover="{RUN}" autofocus onfocus="{RUN}',
    "{{constructor.constructor('" + RUN + "')()}}",
    "${" + RUN + "}",
    "`${" + RUN + "}`",
    f"</title></textarea></style><script>{RUN}</script>",
    f"<a href=javascript:{RUN}>click</a>",
    f"[click](javascript:{RUN})",
    f"<img src={ELSEWHERE}/seen.png>",
    f"<style>@import '{ELSEWHERE}/x.css';</style>",
    f"<base href={ELSEWHERE}/>",
    f"<meta http-equiv=refresh content=0;url={ELSEWHERE}>",
    f"%3Cscript%3E{RUN}%3C/script%3E",
    f"&lt;script&gt;{RUN}&lt;/script&gt;",
    f"<math><mtext><option><FAKE><option></option><mglyph><svg><mtext><style><a title='</style><img src onerror={RUN}>'>",
    "file\u202egnp.exe",
    "left\u2066isolated\u2069\u200f right",
    "__proto__",
    "constructor.prototype.polluted",
)
TERMINAL = (
    "\x1b]0;title\x07after a title",
    "\x1b[2J\x1b[1;1Hafter a clear",
    "\x1b]8;;javascript:" + RUN + "\x1b\\link\x1b]8;;\x1b\\ after a link",
    "a\x00b after a NUL",
    "\x9b31mafter a C1 escape",
    "over\rwritten\b\b after backspaces",
)
"""Texts that act on terminals. Names in the API may not contain them, lines of output may."""

UNNAMED = ("/", "\0")


def file_name(payload: str) -> str:
    """Returns the payload with characters replaced that a file name may not contain."""
    for sign in UNNAMED:
        payload = payload.replace(sign, "∕")
    return payload[:120]


def user_name(payload: str) -> str:
    """Returns the payload as a user name, which is printable and has no spaces. Markup needs no spaces."""
    return "".join(letter for letter in "/".join(payload.split()) if letter.isprintable())[:255]
