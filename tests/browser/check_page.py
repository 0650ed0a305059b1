"""Shows the pages of the sample reports in a headless Chromium.

usage: check_page.py WRITE_SAMPLE_REPORTS [FOLDER FOR PICTURES]

Checks that no errors are logged, that only the file is requested, and that sorting, filtering, pointing, keys and
themes work. Computes the expected values from the report's JSON. Skipped without a browser (MESHARD_BROWSER names
one).
"""
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from browser import Browser, Page, find_browser  # noqa: E402

SKIPPED = 77


class Checks:
    def __init__(self):
        self.passed = self.failed = 0

    def equal(self, what, value, expected):
        self.true(what, value == expected, f"{value!r} instead of {expected!r}")

    def true(self, what, condition, shown=""):
        if condition:
            self.passed += 1
        else:
            self.failed += 1
            print(f"failed: {what}: {shown}")


def column(page, section, number):
    return page.run(f"[...document.querySelectorAll('#{section} tbody tr')].map((row) => row.cells[{number}].innerText)")


def check_quiet(checks, page, name, path):
    checks.equal(f"{name}: nothing is logged", page.complaints(), [])
    checks.equal(f"{name}: nothing is requested but the page", set(page.requests()), {path.as_uri()})
    checks.true(f"{name}: no sideways scrolling", page.run("document.documentElement.scrollWidth <= innerWidth"))


def check_sorting(checks, page, report):
    wholes = [one["whole"] for one in report["logical_collectives"]]
    kinds = [one["kind"] for one in wholes]
    page.click("#collectives button[aria-pressed]")  # ungroups the rows
    checks.equal("every collective has a row", len(column(page, "collectives", 0)), len(kinds))
    heading = "#collectives th:nth-child(1)"
    page.click(f"{heading} button")
    checks.equal("sorted by kind", column(page, "collectives", 0), sorted(kinds))
    checks.equal("the heading says so", page.run(f"document.querySelector('{heading}').getAttribute('aria-sort')"), "ascending")
    page.click(f"{heading} button")
    checks.equal("sorted backward", column(page, "collectives", 0), sorted(kinds, reverse=True))
    checks.equal("the heading says so", page.run(f"document.querySelector('{heading}').getAttribute('aria-sort')"), "descending")
    page.click("#collectives th:nth-child(3) button")
    moved = sorted((max(one["bytes_in"], one["bytes_out"]) * one["executions"] for one in wholes), reverse=True)
    checks.equal("bytes sort as numbers", column(page, "collectives", 2)[0], f"{moved[0] // 2**20} MiB")
    checks.equal("the smallest last", column(page, "collectives", 2)[-1], f"{moved[-1]} B")


def check_filter(checks, page, report):
    page.run("document.querySelector('#collectives input').focus()")
    page.call("Input.insertText", text="gather gpt.py:42")
    checks.equal("the filter keeps what has every word", column(page, "collectives", 0), ["all-gather"] * 2)
    checks.equal("and counts", page.text("#collectives .count"), f"2 of {len(report['logical_collectives'])}")


def check_sharding(checks, page, report):
    """Pointer and keys in the picture of bf16[50257,4096] P("model", none): 4 tiles of 12565 rows, the last one shorter."""
    sizes, rows = {axis["name"]: axis["size"] for axis in report["meshes"][0]["axes"]}, 12565
    ids = report["meshes"][0]["device_ids"]

    def expected(position):
        tile = position % sizes["model"]
        return f"holds [{tile * rows}:{min(50257, (tile + 1) * rows)}, 0:4096] of bf16[50257,4096]"

    checks.true("the value is the largest", "params['embed']" in page.text("#sharding-title"), page.text("#sharding-title"))
    for position in (3, 1):
        page.point_at(f"#sharding-picture [data-position='{position}']")
        shown = page.text("#sharding-details")
        checks.true(f"pointing at position {position} shows its slice", expected(position) in shown, shown)
        checks.true("and its device", f"device {ids[position]} " in shown, shown)
        checks.true("and copies", f"copy 0 of {len(ids) // sizes['model']}" in shown, shown)
        checks.true("the map of devices follows", f"device {ids[position]} " in page.text("#device-details"))
    page.run("document.querySelector('#sharding-picture').focus()")
    page.press("ArrowRight")
    checks.true("the right arrow goes to the next device", expected(2) in page.text("#sharding-details"))
    page.press("End")
    checks.true("End goes to the last device", f"device {ids[-1]} " in page.text("#sharding-details"))
    page.point_at("#device-map [data-position='5']")
    checks.true("the picture of the sharding follows the map", expected(5) in page.text("#sharding-details"))


def check_first_look(checks, page, report):
    """What a reader sees first: the tiles in full rows, then the collectives; sums that add up; nothing unknown shown as 0."""
    ids = page.run("[...document.querySelectorAll('main > section')].map((each) => each.id)")
    checks.equal("the collectives come first", ids[0], "collectives")
    checks.equal("the links follow the sections", page.run("[...document.querySelectorAll('nav a')].map((each) => each.hash.slice(1))"), ids)
    tops = page.run("[...document.querySelectorAll('.tile')].map((each) => Math.round(each.getBoundingClientRect().top))")
    checks.equal("six tiles are two rows of three", [tops.count(top) for top in sorted(set(tops))], [3, 3])
    labels = page.run("[...document.querySelectorAll('.tile .label:first-child')].map((each) => each.innerText)")
    for label in ("Memory per device", "Lower bound per step", "Estimated step time"):
        checks.true(f"a tile {label}", label in labels, labels)
    headings = [text.rstrip(" \u25b2\u25bc") for text in page.run("[...document.querySelectorAll('#collectives th')].map((each) => each.innerText)")]
    checks.true("source, who inserted it, and form are columns", {"Source", "Inserted by", "Form"} <= set(headings), headings)
    known = {"inserted": "partitioner", "asked for": "program", "unknown": "not known"}
    wanted = {known[one["whole"]["cause"]] for one in report["logical_collectives"]}
    checks.equal("who inserted them", set(column(page, "collectives", headings.index("Inserted by"))), wanted)
    widths = page.run("[...document.querySelectorAll('#memory .bar > i')].map((each) => parseFloat(each.style.width))")
    memory = report["memory"]
    checks.true("the segments of the bar add up to the total", abs(sum(widths) - 100 * memory["total"] / memory["capacity"]) < 0.01, widths)
    checks.true("the legend says so", "= 14.3 GiB" in page.text("#memory .legend"), page.text("#memory .legend"))


def check_copies(checks, page, report):
    """The copies of a part are chips inside the cell of the part: P("model", none) is split in rows only."""
    boxes = page.run("[...document.querySelectorAll('#sharding-picture [data-position]')].map((each) => [+each.dataset.position, +each.getAttribute('y'), +each.getAttribute('height')])")
    cells = page.run("[...document.querySelectorAll('#sharding-picture .shared')].map((each) => [+each.getAttribute('y'), +each.getAttribute('height')])")
    checks.equal("a cell for each part", len(cells), 4)
    checks.equal("a chip for each device", sorted(position for position, _, _ in boxes), list(range(32)))
    for position, top, height in boxes:
        cell_top, cell_height = sorted(cells)[position % 4]
        checks.true(f"position {position} is inside its part", cell_top < top and top + height < cell_top + cell_height, (top, height))


def check_panels(checks, page, report):
    """bool[8,4,64,64] P("data", "model", "dcn", none): data (4 tiles) makes panels, each with model x dcn."""
    page.run("[...document.querySelectorAll('#values button.link')].find((b) => b.innerText === 'P(\"data\", \"model\", \"dcn\", none)').click()")
    titles = page.run("[...document.querySelectorAll('#sharding-picture .title')].map((e) => e.innerText)")
    checks.equal("a panel for each tile of dimension 0", titles, [f'dimension 0: "data" = {i} [{2 * i}:{2 * i + 2}]' for i in range(4)])
    checks.equal("each device once", page.run("[...document.querySelectorAll('#sharding-picture [data-position]')].map((e) => +e.dataset.position).sort((a, b) => a - b)"),
                 list(range(32)))
    # Position 21 of (dcn=2, data=4, model=4) is (1, 1, 1).
    page.point_at("#sharding-picture [data-position='21']")
    checks.true("the slice in four dimensions", "holds [2:4, 1:2, 32:64, 0:64]" in page.text("#sharding-details"), page.text("#sharding-details"))


def check_timeline(checks, page, report):
    steps = report["timeline"]
    page.run("document.querySelector('#timeline-canvas').focus()")
    page.press("ArrowRight")
    shown = page.text("#timeline-details")
    checks.true("the right arrow goes to the next step", steps[1]["instruction"] in shown and "110 µs" in shown, shown)
    for key in ("ArrowRight", "ArrowDown"):
        page.press(key)
    shown = page.text("#timeline-details")
    checks.true("down goes into the loop", "all-gather.1" in shown and "180 µs × 12 = 2.16 ms" in shown, shown)
    page.press("ArrowUp")
    checks.true("up leaves it", "while.2" in page.text("#timeline-details"))
    page.point_at("#timeline-canvas")
    page.frame()
    checks.true("pointing selects", any(name in page.text("#timeline-details") for name in ("while.2", "while.3", "fusion.7")), page.text("#timeline-details"))
    page.press("+")
    page.frame()
    colors = page.run("(() => { const c = document.querySelector('#timeline-canvas'), d = c.getContext('2d').getImageData(0, 0, c.width, c.height).data;"
                       " const s = new Set(); for (let i = 0; i < d.length; i += 4) if (d[i + 3] === 255) s.add(d[i] + ',' + d[i + 1] + ',' + d[i + 2]); return s.size; })()")
    checks.true("the timeline is drawn", colors >= 3, colors)


def luminance(color):
    numbers = [int(part) / 255 for part in color.removeprefix("rgb(").rstrip(")").split(",")]
    red, green, blue = (n / 12.92 if n <= 0.04045 else ((n + 0.055) / 1.055) ** 2.4 for n in numbers)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def check_reading(checks, page, name):
    """Checks for a contrast of at least 4.5 (WCAG 2.1, 1.4.3), and that all controls have names."""
    for selector, ground in (("body", "body"), (".hint", "section"), ("td", "section"), ("th button", "section"), (".notes li", ".notes"),
                             (".tile.good .figure", ".tile"), (".tile.warn .figure", ".tile"), ("td button.link", "section"), ("nav a", "body")):
        colors = page.run(f"[getComputedStyle(document.querySelector('{selector}')).color, getComputedStyle(document.querySelector('{ground}')).backgroundColor]")
        light, dark = sorted(map(luminance, colors), reverse=True)
        checks.true(f"{name}: contrast of {selector}", (light + 0.05) / (dark + 0.05) >= 4.5, colors)
    nodes = page.call("Accessibility.getFullAXTree")["nodes"]
    nameless = [node["role"]["value"] for node in nodes if not node.get("ignored") and not node.get("name", {}).get("value")
                and any(each["name"] == "focusable" and each["value"]["value"] for each in node.get("properties", []))
                and node["role"]["value"] not in ("RootWebArea", "main", "generic")]
    checks.equal(f"{name}: everything operable has a name", nameless, [])


def check_hostile(checks, page, report):
    checks.equal("the title is the text", page.run("document.title.startsWith('</script><script>document.title=')"), True)
    checks.equal("no element comes from a name", page.run("[document.scripts.length, document.images.length]"), [2, 0])
    checks.true("names are shown as they are", "<img src=x onerror=alert(1)>" in page.text("#collectives"))
    # The checks detect what the policy blocks: here, a script that is not part of the page.
    page.run("document.body.append(Object.assign(document.createElement('script'), {textContent: 'document.title = 1'}))")
    checks.true("another script is refused", page.run("document.title") != "1" and any("Content Security Policy" in text for text in page.complaints()))


def check_large(checks, page, report):
    checks.equal("all devices are drawn", page.run("document.querySelectorAll('#device-map [data-position]').length"), 512)
    checks.equal("all steps are there", page.text("#timeline .count"), "20,000")
    checks.true("but not all of them rows", page.run("document.querySelectorAll('tr').length") < 500)
    page.run("document.querySelector('#timeline-canvas').focus()")
    page.press("End")
    page.frame()
    checks.true("the last step can be reached", "step 20,000 of 20,000" in page.text("#timeline-details"))
    page.click("#collectives button[aria-pressed]")
    checks.equal("and every collective", page.text("#collectives .count"), "5,000")


def main():
    program = find_browser()
    if program is None:
        print("skipped: no browser (Debian package chromium-headless-shell, or MESHARD_BROWSER)")
        return SKIPPED
    checks, pictures = Checks(), pathlib.Path(sys.argv[2]) if len(sys.argv) > 2 else None
    with tempfile.TemporaryDirectory() as folder, Browser(program) as browser:
        folder = pathlib.Path(folder)
        subprocess.run([sys.argv[1], folder], check=True, timeout=60)
        for name, width, dark, steps in (
                ("sample", 1280, False, (check_first_look, check_copies, check_sorting, check_filter, check_sharding, check_panels, check_timeline)), ("sample", 1280, True, ()),
                ("sample", 390, False, ()), ("gpu", 1280, False, ()), ("large", 1280, False, (check_large,)), ("empty", 1280, False, ()),
                ("hostile", 1280, False, (check_hostile,))):
            label = f"{name} at {width}{' dark' if dark else ''}"
            page, path = Page(browser, width, 900, dark), folder / f"{name}.html"
            page.open(path)
            page.frame()
            if pictures:
                page.save_picture(pictures / f"{name}-{width}-{'dark' if dark else 'light'}.png")
            check_quiet(checks, page, label, path)
            if name == "sample":
                check_reading(checks, page, label)
            for step in steps:
                step(checks, page, json.loads((folder / f"{name}.json").read_text(encoding="utf-8")))
            if name != "hostile":
                checks.equal(f"{label}: nothing is logged at the end", page.complaints(), [])
            if name == "empty":  # tests that the check of quiet pages can fail
                page.run("console.error('heard')")
                checks.true("an error would be noticed", any("heard" in text for text in page.complaints()))
            page.call("Page.close")
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
