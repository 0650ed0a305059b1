"""The page of a result of `./dev hardware`: one HTML file that needs nothing else."""

import html

STYLE = """
:root { color-scheme: light dark; --line: #8884; --good: #1a7f37; --bad: #cf222e; --other: #9a6700 }
@media (prefers-color-scheme: dark) { :root { --good: #3fb950; --bad: #f85149; --other: #d29922 } }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 68rem; margin: 2rem auto; padding: 0 1rem }
table { border-collapse: collapse; width: 100%; margin: .5rem 0 1.5rem; table-layout: auto }
th, td { text-align: left; padding: .25rem .6rem; border-bottom: 1px solid var(--line); vertical-align: top;
  overflow-wrap: anywhere }
td.number { text-align: right; white-space: nowrap; font-variant-numeric: tabular-nums }
.passed { color: var(--good) } .failed, .crashed, .timed { color: var(--bad); font-weight: 600 }
.unsupported, .skipped { color: var(--other) }
pre { overflow: auto; padding: .6rem; border: 1px solid var(--line) }
"""

UNITS = [(1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k"), (1, ""), (1e-3, "m"), (1e-6, "µ"), (1e-9, "n")]


def text_of(value, unit):
    """A number with a prefix where its unit takes one: `1.25 ms`, `3.1 GB/s`."""
    if unit not in ("s", "B/s", "FLOP/s", "B"):
        return f"{value:g} {unit}".strip()
    for size, prefix in UNITS:
        if abs(value) >= size:
            return f"{value / size:.3g} {prefix}{unit}"
    return f"{value:.3g} {unit}"


def state(status):
    return f'<span class="{html.escape(status.split()[0])}">{html.escape(status)}</span>'


def checks_table(checks):
    beside = any("jax" in each for each in checks)
    rows = []
    for each in checks:
        number = text_of(each["value"], each.get("unit", "")) if each.get("value") is not None else ""
        cells = [f"<td>{html.escape(each['name'])}</td><td>{state(each['status'])}</td>",
                 f'<td class="number">{number}</td>']
        if beside:
            theirs = each.get("jax")
            ratio = each["value"] / theirs if theirs else None
            shown = text_of(theirs, each.get("unit", "")) if theirs is not None else ""
            cells.append(f'<td class="number">{shown}</td><td class="number">{f"{ratio:.2f}" if ratio else ""}</td>')
        cells.append(f"<td>{html.escape(each.get('text', ''))}</td>")
        rows.append("<tr>" + "".join(cells) + "</tr>")
    more = "<th>JAX</th><th>ratio</th>" if beside else ""
    return f"<table><tr><th>check</th><th>status</th><th>value</th>{more}<th></th></tr>{''.join(rows)}</table>"


def page(result):
    """The HTML text."""
    facts = "".join(f"<tr><th>{html.escape(name)}</th><td>{html.escape(str(value))}</td></tr>"
                    for name, value in result["device"].items())
    summary = "".join(f'<tr><td><a href="#{html.escape(step["step"])}">{html.escape(step["title"])}</a></td>'
                      f'<td>{state(step["status"])}</td><td class="number">{step["seconds"]:.1f} s</td>'
                      f'<td>{sum(each["status"] == "failed" for each in step["checks"]) or ""}</td></tr>'
                      for step in result["steps"])
    sections = []
    for step in result["steps"]:
        output = f"<pre>{html.escape(step['output'])}</pre>" if step.get("output") else ""
        beside = f"<p>{html.escape(step['jax'])}</p>" if step.get("jax") else ""
        heading = f"{html.escape(step['title'])}: {state(step['status'])}"
        sections.append(f'<h2 id="{html.escape(step["step"])}">{heading}</h2>'
                        f"{beside}{checks_table(step['checks']) if step['checks'] else ''}{output}")
    title = f"meshard on {result['device'].get('device-kind') or result['platform'] or 'unknown hardware'}"
    return f"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{html.escape(title)}</title><style>{STYLE}</style></head><body>
<h1>{html.escape(title)}</h1>
<p>{html.escape(result['date'])}, meshard {html.escape(result['meshard'])}, {result['seconds']:.0f} s in all.</p>
<table>{facts}</table>
<table><tr><th>step</th><th>status</th><th>time</th><th>failed checks</th></tr>{summary}</table>
{''.join(sections)}
</body></html>
"""
