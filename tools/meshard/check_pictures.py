"""The pictures of schedules in the docs are those that `meshard schedule` draws.

usage: check_pictures.py MESHARD DOCS

A line `meshard schedule ... --svg FILE` of a page says how FILE, next to the page, was made. Every SVG image of the docs has such a line,
and its page shows it.
"""
import pathlib
import shlex
import sys

from expectations import Checks

checks = Checks("schedule")
docs = pathlib.Path(sys.argv[2])
made = set()
for page in sorted(docs.rglob("*.md")):
    text = page.read_text(encoding="utf-8")
    for line in text.splitlines():
        words = shlex.split(line) if line.startswith("meshard schedule ") and " --svg " in line else []
        if not words or not words[-1].endswith(".svg"):
            continue
        picture = page.parent / words[-1]
        made.add(picture)
        code, out, err = checks.run(*words[2:-1], "-")
        known = picture.read_text(encoding="utf-8") if picture.exists() else ""
        checks.check(f"{picture} is what this draws: {line}", code == 0 and out == known, err)
        checks.check(f"{page} shows {words[-1]}", f"]({words[-1]})" in text)
for picture in sorted(docs.rglob("*.svg")):
    checks.check(f"a page says how {picture} was made", picture in made)
checks.check("there are pictures of all four schedules", len(made) >= 4, str(made))
checks.end()
