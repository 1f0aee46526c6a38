"""Where a redirect may take a request, and the key with it: nowhere but to the server that was named."""

from __future__ import annotations

from yarl import URL

MAX_REDIRECTS = 5
REDIRECTS = frozenset({301, 302, 303, 307, 308})


def follow(url: URL, status: int, location: str | None) -> URL:
    """Return where ``location`` takes a POST to ``url``; raise ValueError, without path or query, where it may not go.

    The same scheme, host and port, or plain http to https on one host. Method and body are kept, so 303 is refused.
    """
    if location is None:
        raise ValueError("redirect without a Location")
    if status == 303:
        raise ValueError("redirect that drops the request; expected one that keeps it")
    try:
        target = url.join(URL(location))
        fine = target.user is None and target.password is None and (_is_same(url, target) or _is_upgrade(url, target))
        # Not target.origin(): it raises for a URL without a host.
        shown = f"{target.scheme}://{target.host or ''}:{target.port or ''}"
    except (ValueError, TypeError):
        raise ValueError("redirect to something that is no URL") from None
    if not fine:
        raise ValueError(f"redirect to another host, {shown}; not followed")
    return target


def _is_same(url: URL, target: URL) -> bool:
    return (url.scheme, url.host, url.port) == (target.scheme, target.host, target.port)


def _is_upgrade(url: URL, target: URL) -> bool:
    default_ports = url.is_default_port() and target.is_default_port()
    return url.host == target.host and (url.scheme, target.scheme) == ("http", "https") and default_ports
