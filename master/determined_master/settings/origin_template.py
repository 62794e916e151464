"""The address of an origin behind a proxy, with a place for the task. Pure."""

from urllib.parse import urlsplit


def problem(template: str, *, has_domain: bool) -> str:
    """Returns what is wrong with a template, or an empty text.

    >>> problem("https://{label}.tasks.example", has_domain=True)
    ''
    >>> problem("https://tasks.example", has_domain=False)
    'every task needs an address of its own: put {port} into it, such as https://cluster.example.org:{port}'
    """
    name, example = "port", "https://cluster.example.org:{port}"
    if has_domain:
        name, example = "label", "https://{label}.tasks.example.org"
    if f"{{{name}}}" not in template:
        return f"every task needs an address of its own: put {{{name}}} into it, such as {example}"
    wrong = f"this is no address of an origin: scheme, host and port alone, such as {example}"
    try:
        parts = urlsplit(template.format(label="8888-ab", port=8100))
        is_origin = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except (AttributeError, KeyError, IndexError, ValueError):
        return wrong
    is_alone = parts.path in ("", "/") and not parts.query and not parts.fragment and parts.username is None
    return "" if is_origin and is_alone else wrong
