"""Posts an asset event to Airflow: a nudge for the DAG `rescore`, which looks at the ledger by itself all the same.

    warning = post_event("http://localhost:8080", {"training_run": "my-gpt", ...}, login=environment().airflow_login)

A token, the asset's number by its name, the event: three requests of at most 10 s each. Without a login the token is
asked for as Airflow gives it where everybody is admin. No redirect is followed: it could take the token elsewhere.
"""

from __future__ import annotations

import http.client
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping
from typing import Any

__all__ = ["ASSET", "post_event"]

ASSET = "corpusmill_progress"
"""Name of the asset that starts the DAG."""
_SECONDS = 10.0
_MOST_BYTES = 10_000_000


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any) -> None:
        return None


def post_event(url: str, extra: Mapping[str, Any], *, login: str | None = None, asset: str = ASSET) -> str:
    """Post an event of an asset; returns why it could not be posted, in a sentence, or nothing.

    Args:
        url: of Airflow's API server, as `http://localhost:8080`.
        login: `user:password`.
    """
    base = url.rstrip("/")
    try:
        if urllib.parse.urlsplit(base).scheme not in ("http", "https"):
            raise ValueError("expected a URL that begins with http:// or https://")
        user, _, password = (login or "").partition(":")
        credentials = {"username": user, "password": password} if login else None
        token = _asked(f"{base}/auth/token", credentials)["access_token"]
        query = urllib.parse.urlencode({"name_pattern": asset, "limit": 100})
        found = _asked(f"{base}/api/v2/assets?{query}", None, token)["assets"]
        numbers = [one["id"] for one in found if one["name"] == asset]
        if not numbers:
            raise ValueError(f"it knows no asset {asset}: is the DAG `rescore` there?")
        _asked(f"{base}/api/v2/assets/events", {"asset_id": numbers[0], "extra": dict(extra)}, token)
    except urllib.error.HTTPError as error:
        with error:
            why = f"it answers {error.code} {error.reason} to {urllib.parse.urlsplit(error.url or base).path}"
            if error.code in (401, 403):
                why += ": set CORPUSMILL_AIRFLOW_LOGIN to user:password"
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = getattr(error, "reason", None) or error
        why = f"{type(error).__name__}: {reason}" if isinstance(error, KeyError | TypeError) else str(reason)
    else:
        return ""
    return f"Airflow at {base} was not told ({why}); it reads the ledger by itself at its next look."


def _asked(url: str, body: Mapping[str, Any] | None, token: str | None = None) -> Any:
    headers = {"Accept": "application/json", "Content-Type": "application/json"}
    if token is not None:
        headers["Authorization"] = f"Bearer {token}"
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, headers)
    with urllib.request.build_opener(_NoRedirect).open(request, timeout=_SECONDS) as answer:
        return json.loads(answer.read(_MOST_BYTES))
