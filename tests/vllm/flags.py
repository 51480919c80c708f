"""`python -m tests.vllm.flags` writes planner/vllm_flags.json from vLLM's own parser: `make flags`."""

from __future__ import annotations

import json

from planner.vllm_flags import FILE
from tests.vllm.process import answer


def main() -> None:
    """Write the file, a flag a line."""
    listed = answer("tests.vllm.list_flags")
    flags = ",\n".join(f"  {json.dumps(name)}: {json.dumps(entry)}" for name, entry in sorted(listed["flags"].items()))
    head = f'{{\n "vllm": "{listed["vllm"]}",\n "date": "{listed["date"]}"'
    FILE.write_text(f'{head},\n "flags": {{\n{flags}\n }}\n}}\n')


if __name__ == "__main__":
    main()
