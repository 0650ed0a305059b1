"""Builds the documentation site and opens it in a headless Chromium.

usage: check_site.py [FOLDER FOR PICTURES]

From the disk and from a local server, the home page shows its navigation, the search finds an op, the palette can be
changed and stays, nothing is logged as an error, and nothing is requested from anywhere else. No page is wider than a
phone. Questions of readers (questions.json) are answered by the search, and axe finds nothing serious. Skipped where there is no browser (MESHARD_BROWSER names one), or where the packages of tools/site/site.lock were
not installed (`./dev site` installs them).
"""
import functools
import http.server
import pathlib
import subprocess
import sys
import tempfile
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests/browser"), str(ROOT / "tools/site")]
import environment  # noqa: E402
from browser import Browser, Page, find_browser  # noqa: E402
from check_page import Checks, SKIPPED  # noqa: E402
from search import QUESTIONS, clicks, first_hits  # noqa: E402

TABS = ["Home", "Tutorials", "How-to", "Guides", "Concepts", "Reference", "Project", "Contributing"]
WIDE_PAGES = ["index", "overview", "glossary", "concepts/propagation", "concepts/control-flow", "guides/environment", "guides/troubleshooting",
              "reference/dot_general", "api/mesh", "api/ops", "dev/testing", "decisions/goldens"]
ACCESSIBLE_PAGES = ["index", "tutorials/first-steps-python", "concepts/explain", "reference/dot_general", "api/optim", "sample-report"]


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


def wait_for(page, expression, limit=20):
    """The first value of the expression that is true; None after `limit` seconds."""
    deadline = time.monotonic() + limit
    while time.monotonic() < deadline:
        if value := page.run(expression):
            return value
        time.sleep(0.05)
    return None


def open_page(browser, address, width=1280, dark=False):
    page = Page(browser, width, 900, dark)
    page.call("Page.navigate", url=address)
    wait_for(page, "document.readyState === 'complete' && document.querySelector('article') !== null && location.href !== 'about:blank'")
    page.frame()
    return page


def check_quiet(checks, page, name, site):
    checks.equal(f"{name}: nothing is logged", page.complaints(), [])
    others = [url for url in page.requests() if not url.startswith((site, "data:", "about:"))]
    checks.equal(f"{name}: nothing is requested from elsewhere", others, [])


def check_home(checks, page, name):
    checks.equal(f"{name}: the tabs", page.run("[...document.querySelectorAll('.md-tabs__item')].map((e) => e.innerText.trim())"), TABS)
    checks.true(f"{name}: the heading says what meshard does", "hardware" in page.text("article h1"), page.text("article h1"))
    links = page.run("[...document.querySelectorAll('article a[href]')].length")
    checks.true(f"{name}: the home page links to where readers come from", links >= 10, links)


def check_search(checks, page, name):
    checks.true(f"{name}: there is a search", wait_for(page, "!document.querySelector('.md-search').hidden"))
    page.run("document.querySelector('.md-search__input').focus()")
    page.call("Input.insertText", text="all_reduc")
    for kind in ("keyDown", "keyUp"):  # the search listens to keys
        page.call("Input.dispatchKeyEvent", type=kind, key="e", text="e" if kind == "keyDown" else "")
    found = wait_for(page, "[...document.querySelectorAll('.md-search-result__link')].map((e) => e.getAttribute('href')).filter((e) => e)")
    checks.true(f"{name}: the search finds all_reduce", found and any("reference/all_reduce.html" in each for each in found), found)


def check_questions(checks, page, folder):
    """The questions of readers are answered by the first or second page that the search finds, and by at most three clicks."""
    found, away = first_hits(page, QUESTIONS), clicks(folder)
    for question, answers in QUESTIONS.items():
        answers = [f"{name}.html" for name in answers]
        checks.true(f"{question}: is found", any(name in found[question][:2] for name in answers), found[question][:4])
        checks.true(f"{question}: is near", min(away.get(name, 99) for name in answers) <= 3, [away.get(name) for name in answers])


def check_palette(checks, page, name, address):
    def scheme():
        return page.run("document.body.getAttribute('data-md-color-scheme')")

    def ground():
        return page.run("getComputedStyle(document.body).backgroundColor")

    checks.equal(f"{name}: light as the system", scheme(), "default")
    light = ground()
    page.click("label[for=__palette_1]:not([hidden])")
    page.frame()
    checks.equal(f"{name}: the button makes it dark", scheme(), "slate")
    checks.true(f"{name}: dark is darker", luminance(ground()) < 0.2 < 0.8 < luminance(light), (light, ground()))
    page.call("Page.navigate", url=address.replace("index.html", "glossary.html"))
    wait_for(page, "document.querySelector('article h1')?.innerText.includes('Glossary')")
    checks.equal(f"{name}: other pages are dark too", scheme(), "slate")


def luminance(color):
    red, green, blue = (int(part) / 255 for part in color.removeprefix("rgba(").removeprefix("rgb(").rstrip(")").split(",")[:3])
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def check_narrow(checks, browser, site, pictures):
    for name in WIDE_PAGES:
        for width in (1280, 400) if pictures else (400,):
            page = open_page(browser, f"{site}/{name}.html", width)
            checks.true(f"{name} at {width}: no sideways scrolling", page.run("document.documentElement.scrollWidth <= innerWidth"))
            checks.equal(f"{name} at {width}: nothing is logged", page.complaints(), [])
            if pictures:
                page.save_picture(pictures / f"site-{name.replace('/', '-')}-{width}.png")
            page.call("Page.close")


def check_accessible(checks, browser, site, axe, scheme):
    """axe-core (github.com/dequelabs/axe-core) finds nothing serious, such as text without contrast or without a name."""
    for name in ACCESSIBLE_PAGES:
        page = Page(browser, 1280, 900, scheme == "dark")
        page.call("Page.navigate", url=f"{site}/{name}.html")
        wait_for(page, "document.readyState === 'complete' && document.querySelector('h1') !== null && location.href !== 'about:blank'")
        page.frame()
        page.run(f"{axe}; 0")
        found = page.run("axe.run().then((all) => all.violations.filter((one) => ['serious', 'critical'].includes(one.impact))"
                         ".map((one) => `${one.id}: ${one.nodes[0].html.slice(0, 120)}`))")
        checks.equal(f"{name}, {scheme}: accessible", found, [])
        page.call("Page.close")


def check_can_fail(checks, page, site):
    """What the checks look for is noticed: an error, and a request to somewhere else."""
    page.run("console.error('heard'); fetch('http://127.0.0.1:9/elsewhere').catch(() => 0)")
    page.frame()
    checks.true("an error would be noticed", any("heard" in text for text in page.complaints()))
    checks.true("a request would be noticed", any("elsewhere" in url for url in page.requests()))


def main():
    program, python = find_browser(), environment.existing_interpreter()
    if program is None:
        print("skipped: no browser (Debian package chromium-headless-shell, or MESHARD_BROWSER)")
        return SKIPPED
    if python is None:
        print("skipped: the packages of tools/site/site.lock are not installed; `./dev site` installs them")
        return SKIPPED
    checks, pictures = Checks(), pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else None
    with tempfile.TemporaryDirectory() as name, Browser(program) as browser:
        folder = pathlib.Path(name).resolve() / "site"
        done = subprocess.run([python, ROOT / "tools/site/build_site.py", "--out", folder], capture_output=True, encoding="utf-8", timeout=300)
        checks.equal("the site is built without a word", (done.returncode, done.stdout + done.stderr), (0, ""))
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for how, site in (("disk", folder.as_uri()), ("server", f"http://127.0.0.1:{server.server_port}")):
            page = open_page(browser, f"{site}/index.html")
            check_home(checks, page, how)
            check_search(checks, page, how)
            if pictures:
                page.save_picture(pictures / f"site-search-{how}.png")
            check_quiet(checks, page, how, site)
            page.call("Page.close")
        page = open_page(browser, f"{site}/index.html")
        check_questions(checks, page, folder)
        axe = next(pathlib.Path(python).parents[1].glob("lib/*/site-packages/axe_playwright_python/axe.min.js")).read_text(encoding="utf-8")
        check_accessible(checks, browser, site, axe, "light")
        check_palette(checks, page, "server", f"{site}/index.html")
        check_accessible(checks, browser, site, axe, "dark")  # which the page before has chosen
        if pictures:
            page.save_picture(pictures / "site-dark.png")
        check_quiet(checks, page, "server in the dark", site)
        check_can_fail(checks, page, site)
        check_narrow(checks, browser, site, pictures)
        server.shutdown()
    print(f"{checks.passed} passed, {checks.failed} failed")
    return 1 if checks.failed else 0


if __name__ == "__main__":
    sys.exit(main())
