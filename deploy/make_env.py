"""Writes .env for docker-compose.yml: deploy/env.example with random secrets, readable by its owner only.

Needs Python's standard library only. An existing .env is left as it is.
"""

from __future__ import annotations

import base64
import os
import secrets
import sys
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent


def filled(example: str) -> str:
    """The example with a fresh secret after each `NAME=` that is empty."""
    lines = []
    for line in example.splitlines():
        name, equals, value = line.partition("=")
        if equals and not value and not name.startswith("#"):
            # Hex is safe in addresses; a Fernet key is 32 bytes in URL-safe base64.
            value = (
                base64.urlsafe_b64encode(secrets.token_bytes(32)).decode()
                if "FERNET" in name
                else secrets.token_hex(40)
            )
        lines.append(f"{name}{equals}{value}")
    return "\n".join(lines) + "\n"


def main() -> int:
    target = REPO / ".env"
    try:
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        print(f"{target} exists and is left as it is: remove it to get new secrets.", file=sys.stderr)
        return 1
    with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
        stream.write(filled((REPO / "deploy" / "env.example").read_text(encoding="utf-8")))
    print(f"{target} is written. The password of admin stands in it; set the folders, then `docker compose up -d`.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
