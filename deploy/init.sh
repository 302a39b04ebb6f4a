#!/usr/bin/env bash
# Prepares Airflow once per start: database, pools, password. Safe to run again.
set -euo pipefail

airflow db migrate

pools="$(mktemp --suffix .json)"
trap 'rm -f "$pools"' EXIT
cat > "$pools" <<JSON
{
  "cpu": {"slots": ${POOL_CPU:-4}, "description": "one slot a core of all workers: chunks of a pass", "include_deferred": false},
  "mem_heavy": {"slots": 1, "description": "tasks that need a machine's memory for themselves", "include_deferred": false}
}
JSON
airflow pools import "$pools"

if [ -n "${ADMIN_PASSWORD:-}" ]; then
  umask 077
  python - <<'PYTHON'
import json, os, pathlib
path = pathlib.Path(os.environ["AIRFLOW__CORE__SIMPLE_AUTH_MANAGER_PASSWORDS_FILE"])
known = json.loads(path.read_text()) if path.exists() and path.stat().st_size else {}
path.write_text(json.dumps(known | {"admin": os.environ["ADMIN_PASSWORD"]}))
PYTHON
fi
