"""Called by mkdocs (tools/site/mkdocs.yml): adds the pages outside docs/, the long lists of the navigation, and copies of files."""

import json
import logging
import pathlib
import sys

from mkdocs.structure.files import File

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(HERE))
import pages  # noqa: E402

LOG = logging.getLogger("mkdocs.hooks")  # --strict counts its warnings
SECTIONS = {"Ops": "reference", "Python reference": "python", "C++ API": "api", "Decisions": "decisions"}
STYLE = {"site.css": "assets/site.css", "worker_of_file.js": "assets/worker_of_file.js"}


def on_config(config):
    """Names the site's version, and fills the empty lists of the navigation with the pages of their folders."""
    config.site_name = f"meshard {pages.version(ROOT)}"
    if config.extra["release"]:
        config.site_name, config.extra["version"] = "meshard", {"provider": "mike"}  # the theme shows a list of versions
    fill(config.nav)
    return config


def fill(entries):
    for entry in entries:
        if isinstance(entry, dict):
            for name, below in entry.items():
                if name in SECTIONS:
                    entry[name] = pages.section(SECTIONS[name], ROOT)
                elif isinstance(below, list):
                    fill(below)


def sources(files):
    """Path in the repository of each page of the site."""
    outside = {page: path for path, page in pages.PAGES_OUTSIDE.items()}
    return {file.src_uri: outside.get(file.src_uri, f"docs/{file.src_uri}") for file in files.documentation_pages()}


def on_files(files, config):
    files.remove(files.get_file_from_path("index.md"))  # docs/index.md, which is all.md; the site begins with a page of its own
    for path, page in pages.PAGES_OUTSIDE.items():
        files.append(File.generated(config, page, content=(ROOT / path).read_text(encoding="utf-8")))
    for name, page in STYLE.items():
        files.append(File.generated(config, page, abs_src_path=str(HERE / name)))
    copies = set()
    for page, source in sources(files).items():
        pages.convert((ROOT / source).read_text(encoding="utf-8"), source, page, copies)
    for path in sorted(copies):
        there = path.removeprefix("docs/") if path.startswith("docs/") else pages.copy_of(path)
        if not (ROOT / path).is_file():
            LOG.warning("a page links to %s, which is not a file", path)
        elif files.get_file_from_path(there) is None:
            files.append(File.generated(config, there, abs_src_path=str(ROOT / path)))
    return files


def on_page_markdown(markdown, page, config, files):
    page.meta.setdefault("search", pages.search_of(page.file.src_uri))
    source = sources(files)[page.file.src_uri]
    return pages.convert(markdown, source, page.file.src_uri, set())


def on_page_content(html, page, config, files):
    return pages.unbroken(html)


def on_post_page(output, page, config):
    return pages.named(output)


def on_post_build(config):
    """The search index as a script too: a page that was opened from the disk cannot read other files."""
    folder = pathlib.Path(config.site_dir) / "search"
    text = (folder / "search_index.json").read_text(encoding="utf-8")
    (folder / "search_index.js").write_text(f"var __index = {json.dumps(json.loads(text), separators=(',', ':'))};\n", encoding="utf-8")
